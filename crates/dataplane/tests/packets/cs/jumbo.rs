//! Frames of an MTU of 9000: in several pieces, of which only the first can be read in place.

use std::{os::fd::AsFd as _, time::Duration};

use baton_abi::{DataServer, PUNT_JUMBO_BYTES, ROUTE_PUNTS, SERVICE_PUNTS};
use baton_dataplane::{Punts, Resumed, sys};

use super::{
    fate::{Moves, Pins, Waits, second},
    http::{Connection, route, routes_by_name, to},
    switched::switched,
};
use crate::{
    cluster::{ARRIVES_AT, HTTP, data_server, first_pool_of_one},
    lccp::sent,
    node::{Drop, Node, Redirect, Tx},
    read::Packet,
    segment::Client,
};

/// 9000, less 40 of headers, less 100 of LCCP.
const JUMBO_MSS: u16 = 8860;

fn prepared() -> Node {
    let node = Node::cs();
    node.change(|settings| settings.mss = JUMBO_MSS);
    routes_by_name(&node);
    node
}

/// A request for the second data server that is so long.
fn request(bytes: usize) -> String {
    let line = "GET /ds2/ HTTP/1.1\r\nHost: a\r\nCookie: \r\n\r\n";
    let cookie = "c".repeat(bytes - line.len());
    line.replace("Cookie: ", &format!("Cookie: {cookie}"))
}

/// Whether this kernel can pull headers into the linear part, and a test run can leave them out of it.
fn pulls() -> bool {
    let symbols = std::fs::read_to_string("/proc/kallsyms").unwrap();
    let pulls = symbols.contains(" bpf_xdp_pull_data");
    if !pulls {
        eprintln!("left out: this kernel has no bpf_xdp_pull_data()");
    }
    pulls
}

#[test]
fn a_long_request_moves_a_connection() {
    let node = prepared();
    for (bytes, fate) in [
        (2041, Moves),
        (3500, Moves),
        (3600, Moves),
        (7000, Moves),
        (JUMBO_MSS.into(), Moves),
        (usize::from(JUMBO_MSS) + 1, Waits(0)),
    ] {
        second(&node, &format!("{bytes} bytes"), fate, |packet| {
            packet.options([]).payload(request(bytes))
        });
    }
}

#[test]
fn what_is_longer_than_is_looked_at() {
    let node = prepared();
    node.change(|settings| settings.mss = 16_300);
    for (bytes, fate) in [(16_300, Moves), (16_376, Waits(0)), (16_377, Pins)] {
        second(&node, &format!("{bytes} bytes"), fate, |packet| {
            packet.options([]).payload(request(bytes))
        });
    }
}

/// Segments that the kernel has merged go back out where they came in, which cuts them; elsewhere it would refuse
/// them without a word.
#[test]
fn merged_segments() {
    let node = prepared();
    let mut connection = Connection::answered(&node);
    // A body without a length, so that where the next request begins does not matter.
    let request = "POST /ds1/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let request = connection.data(request);
    connection.send(&node, &request);
    let most = 9000 - 52;
    for (bytes, merged) in [(most, 0), (most + 1, 1), (30_000, 1)] {
        let packet = connection.data(vec![b'x'; bytes]);
        let counted = connection.send(&node, &packet).counted;
        assert_eq!(counted.get("cs_forward"), Some(&1));
        assert_eq!(counted.get("cs_merged").copied().unwrap_or(0), merged);
    }
    let elsewhere = DataServer {
        ifindex: ARRIVES_AT + 1,
        ..data_server(0)
    };
    node.plane().set_data_server(0, &elsewhere).unwrap();
    let packet = connection.data(vec![b'x'; most + 1]);
    node.run(&packet.frame())
        .expect(Drop, &[("cs_merged_lost", 1)]);
    let packet = connection.data(vec![b'x'; most]);
    let bytes = packet.packet().len() as u64;
    let counted = [("cs_forward", 1), ("cs_forward_bytes", bytes)];
    node.run(&packet.frame()).expect(Redirect, &counted);
}

/// All that the Host header and the end of the header are found by is behind the first pieces.
#[test]
fn what_is_far_behind_is_read() {
    let node = prepared();
    let name = "far.example.org";
    node.plane()
        .set_hosts(&[(baton_abi::HostKey::exact(name).unwrap(), 1)])
        .unwrap();
    let other = u32::from(first_pool_of_one());
    node.plane()
        .set_routes(&[(route(1, "/"), other + 2), (route(0, "/"), other)])
        .unwrap();
    let long = "c".repeat(8000);
    let request = format!("GET / HTTP/1.1\r\nCookie: {long}\r\nHost: {name}\r\n\r\n");
    let connection = Connection::open(&node, request);
    assert_eq!(connection.entry(&node).owner, 2);
}

#[test]
fn headers_outside_of_the_linear_part() {
    if !pulls() {
        return;
    }
    let node = prepared();
    for linear in [14, 20, 34, 40, 54, 65, 100, 128, 255, 256, 257, 2000] {
        node.set_linear(linear);
        let client = Client::fresh();
        let cookie = node.cookie(&client);
        let ack = client.ack(cookie);
        node.run(&ack.frame())
            .expect(Drop, &[("cs_handshake_ack", 1)]);
        for bytes in [200, 1300, 8000] {
            second(&node, &format!("{linear} of {bytes}"), Moves, |packet| {
                packet.payload(request(bytes))
            });
            second(&node, &format!("{linear} of {bytes}"), Moves, |packet| {
                packet
                    .ip_options([1; 40])
                    .options([1; 40])
                    .payload(request(bytes))
            });
        }
    }
}

#[test]
fn what_is_not_for_us_passes_as_it_came() {
    if !pulls() {
        return;
    }
    let node = prepared();
    let other = Client::of("10.77.0.101:80".parse().unwrap());
    let frame = other.get(7).payload(vec![b'x'; 8000]).frame();
    for linear in [14, 60, 4096] {
        node.set_linear(linear);
        node.run(&frame).expect(crate::node::Pass, &[]).untouched();
    }
}

/// The answer is shorter than the frame, or than what of the frame was linear.
#[test]
fn nobody_can_answer_a_long_request() {
    let node = prepared();
    node.plane().set_routes(&[(route(0, "/"), 2)]).unwrap();
    let linear = if pulls() {
        &[14, 66, 100, 4096][..]
    } else {
        &[]
    };
    let all = linear.iter().copied().map(Some).chain([None]);
    for linear in all {
        if let Some(bytes) = linear {
            node.set_linear(bytes);
        }
        for bytes in [100, 300, 1300, 8000] {
            let client = Client::of(HTTP);
            let packet = client.get(node.cookie(&client)).payload(request(bytes));
            let seen = node.run(&packet.frame());
            seen.check(Tx, &[("cs_unavailable", 1)]).unwrap();
            let tcp = seen.packet().tcp().unwrap();
            assert!(tcp.payload.starts_with(b"HTTP/1.1 503 "), "{linear:?}");
            assert_eq!(seen.packet().padding, 0);
            let acknowledged = packet.seq.wrapping_add(packet.payload.len() as u32);
            assert_eq!(tcp.header.acknowledgment_number, acknowledged);
        }
    }
}

#[test]
fn through_the_switch() {
    let node = prepared();
    let client = Client::of(HTTP);
    let cookie = node.cookie(&client);
    let packet = client.get(cookie).payload(request(8000));
    let seen = node.run(&switched(&packet.frame()));
    let message = sent(&node, &seen.expect(Tx, &[("cs_adopt", 1)]));
    assert_eq!(message.packet, packet.packet());

    let switch = Node::switch();
    switch.change(|settings| settings.mss = JUMBO_MSS);
    let frame = packet.frame();
    let seen = switch.run(&frame).expect(Tx, &[("switch_forward", 1)]);
    assert_eq!(seen.frame.len(), frame.len() + 14);
    assert_eq!(seen.frame[14..], frame);
}

/// All requests of this node are user space's to judge.
fn judged(node: Node) -> (Node, Punts) {
    node.change(|settings| settings.mss = JUMBO_MSS);
    let pool = first_pool_of_one();
    node.plane()
        .set_routes(&[(route(0, "/"), u32::from(pool) | ROUTE_PUNTS)])
        .unwrap();
    node.change_flags(|flags| flags | SERVICE_PUNTS);
    let punts = node.plane().punts().unwrap();
    punts.give_sign(Duration::from_secs(3600)).unwrap();
    (node, punts)
}

/// What leaves by no interface must be run by the kernel itself, which it does not with such frames: the client's
/// next try goes the way that user space has found.
#[test]
fn a_long_request_for_this_very_node() {
    let (node, punts) = judged(Node::both());
    for (bytes, late) in [(2500, false), (3500, true), (8000, true)] {
        let client = Client::of(HTTP);
        let packet = client.get(node.cookie(&client)).payload(request(bytes));
        let seen = node.run(&packet.frame());
        seen.check(Drop, &[("cs_punted", 1)]).unwrap();
        let punt = punts.wait(Duration::ZERO).unwrap().next().unwrap();
        let resumed = punts.resume(&punt, to(first_pool_of_one()), None).unwrap();
        let expected = if late {
            Resumed::TooLong
        } else {
            Resumed::Done
        };
        assert_eq!(resumed, expected, "{bytes}");
        assert_eq!(node.tcb(&client).unwrap().owner, 0);
        // The first program alone: a test run gives the second one no frame of several pages.
        node.look();
        let program = node.plane().programs().cs.as_ref().unwrap().as_fd();
        sys::run_on_frame(program, &packet.frame(), None, 1).unwrap();
        let counted: Vec<_> = node.moved().into_keys().collect();
        assert_eq!(counted, ["cs_adopt_again"], "{bytes}");
    }
}

/// User space sees all of it; and what is longer than it can be shown is decided without it.
#[test]
fn user_space_judges_a_long_request() {
    let (node, punts) = judged(Node::fresh_cs());
    let pool = first_pool_of_one();
    for bytes in [2200, 2300, 4000, 8000] {
        let client = Client::of(HTTP);
        let packet = client.get(node.cookie(&client)).payload(request(bytes));
        node.run(&packet.frame()).expect(Drop, &[("cs_punted", 1)]);
        let mut shown: Vec<_> = punts.wait(Duration::ZERO).unwrap().collect();
        assert_eq!(shown.len(), 1);
        let punt = shown.remove(0);
        assert_eq!(punt.frame, packet.frame());
        let Resumed::Leaves(frame) = punts.resume(&punt, to(pool + 1), None).unwrap() else {
            panic!("{bytes} bytes do not leave");
        };
        crate::read::verify_checksums(&frame).unwrap();
        let body = Packet::read(&frame).unwrap().body;
        assert!(body.ends_with(&packet.packet()));
        assert_eq!(node.tcb(&client).unwrap().owner, 1);
    }

    node.change(|settings| settings.mss = 16_000);
    let longest = PUNT_JUMBO_BYTES as usize - 14 - 52;
    for (bytes, counted) in [
        (longest + 1, &[("cs_adopt", 1), ("cs_punt_too_big", 1)][..]),
        (longest, &[("cs_punted", 1)]),
    ] {
        let client = Client::of(HTTP);
        let packet = client.get(node.cookie(&client)).payload(request(bytes));
        let seen = node.run(&packet.frame());
        let verdict = if counted.len() == 1 { Drop } else { Tx };
        seen.check(verdict, counted).unwrap();
    }
}
