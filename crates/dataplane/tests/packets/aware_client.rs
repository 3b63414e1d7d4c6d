//! Which way an aware client's packets take, depending on what is known of their connection. The scenario `direct`
//! shows what sockets send and receive.

use std::{
    net::{Ipv4Addr, SocketAddrV4},
    os::fd::AsFd as _,
};

use baton_dataplane::{ClientOptions, ClientPrograms, Ipv4Network, sys};
use etherparse::{IpNumber, Ipv4Header};

use crate::prelude::*;

/// A tcx program's verdicts.
const GO_ON: u32 = u32::MAX;
const REDIRECT: u32 = 7;

const NEAR: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 11);
const FAR: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 11);
/// `MARK_SENT` of bpf/aware_client/way.h.
const SENT: u32 = 0x6274_6e31;

fn programs() -> ClientPrograms {
    let options = ClientOptions {
        interface: ARRIVES_AT,
        lan: Ipv4Network {
            address: Ipv4Addr::new(192, 0, 2, 7),
            mask: Ipv4Addr::new(255, 255, 255, 0),
        },
        netns: 0,
        services: vec![WEB],
        within: None,
        silence: 0,
    };
    ClientPrograms::load(&options).unwrap()
}

/// Runs the program on a frame that the client sends. Returns the verdict, and the frame as the program leaves it.
fn leave(programs: &ClientPrograms, frame: &[u8]) -> (u32, Vec<u8>) {
    let outcome = sys::run_on_frame(programs.way.as_fd(), frame, None, 1).unwrap();
    (outcome.verdict, outcome.frame)
}

fn counted(programs: &ClientPrograms, name: &str) -> u64 {
    let counters = programs.counters().unwrap();
    let found = counters.iter().find(|(counter, _)| counter == name);
    found.expect(name).1
}

fn packets(client: &Client) -> Vec<Segment> {
    let ack = client.later(7, GET.len(), 100);
    vec![
        ack.clone(),
        ack.clone().flags("PA").payload(GET),
        ack.clone().flags("FA"),
        ack.clone().flags("R"),
        ack.options([]),
    ]
}

fn told(programs: &ClientPrograms, server: Ipv4Addr) -> Client {
    let client = Client::fresh();
    programs.tell(client.address, WEB, server).unwrap();
    client
}

#[test]
fn on_the_lan_only_the_neighbor_is_another() {
    let programs = programs();
    let client = told(&programs, NEAR);
    for packet in packets(&client) {
        assert_eq!(
            leave(&programs, &packet.frame()),
            (REDIRECT, packet.frame())
        );
    }
    assert_eq!(counted(&programs, "client_direct"), 5);
    assert_eq!(counted(&programs, "client_wrapped"), 0);
}

#[test]
fn behind_a_router_a_packet_is_inside_another() {
    let programs = programs();
    let client = told(&programs, FAR);
    for packet in packets(&client) {
        let inside = packet.packet();
        let (verdict, frame) = leave(&programs, &packet.frame());
        let from = *packet.from.ip();
        let length = u16::try_from(inside.len()).unwrap();
        let (from, to) = (from.octets(), FAR.octets());
        let mut outer = Ipv4Header::new(length, 64, IpNumber::IPV4, from, to).unwrap();
        outer.header_checksum = outer.calc_header_checksum();
        assert_eq!(verdict, REDIRECT);
        assert_eq!(frame[IP..], [&outer.to_bytes()[..], &inside].concat());
    }
    assert_eq!(counted(&programs, "client_direct"), 0);
    assert_eq!(counted(&programs, "client_wrapped"), 5);
}

#[test]
fn everything_else_goes_its_way() {
    let programs = programs();
    let client = told(&programs, FAR);
    let ack = client.later(7, GET.len(), 100);
    let port = client.address.port();
    let elsewhere = SocketAddrV4::new(*client.address.ip(), port ^ 1);
    let others = [
        ("a connection begins", client.syn()),
        (
            "of another connection",
            Segment {
                from: elsewhere,
                ..ack.clone()
            },
        ),
        (
            "to another service",
            ack.clone().to(SocketAddrV4::new(*WEB.ip(), 81)),
        ),
        ("a stranger", Client::fresh().later(7, 1, 1)),
    ];
    for (name, packet) in others {
        assert_eq!(
            leave(&programs, &packet.frame()),
            (GO_ON, packet.frame()),
            "{name}"
        );
    }
    for bytes in [34, 53] {
        let frame = &ack.frame()[..bytes];
        assert_eq!(
            leave(&programs, frame),
            (GO_ON, frame.to_vec()),
            "{bytes} bytes"
        );
    }
    assert_eq!(counted(&programs, "client_wrapped"), 0);
}

/// Once its next hop is known, the packet comes to this program again with the mark `SENT`. It then leaves without
/// the mark.
#[test]
fn a_packet_is_sent_once() {
    let programs = programs();
    let client = told(&programs, NEAR);
    let frame = client.later(7, GET.len(), 100).frame();
    let mut context = [0u8; 192];
    context[8..12].copy_from_slice(&SENT.to_ne_bytes()); // __sk_buff.mark
    let program = programs.way.as_fd();
    let outcome = sys::run_on_frame(program, &frame, Some(&mut context), 1).unwrap();
    assert_eq!((outcome.verdict, outcome.frame), (GO_ON, frame));
    assert_eq!(context[8..12], [0; 4]);
    assert_eq!(counted(&programs, "client_direct"), 0);
}
