//! The congestion window travels with the connection, from socket to socket.

use std::{io::Write as _, net::TcpStream, os::fd::AsFd as _};

use baton_wire::{Message, TcbPart};
use nix::{getsockopt_impl, libc, sockopt_impl, sys::socket::getsockopt};

use crate::{
    data_server::door::owner::{ELSEWHERE, HANDED_ON, routed},
    prelude::*,
};

/// Number of words of `struct tcp_info` that every kernel has. Later kernels append to the structure.
const INFO_WORDS: usize = 21;
const CWND_AT: usize = std::mem::offset_of!(libc::tcp_info, tcpi_snd_cwnd) / size_of::<u32>();
const UNACKED_AT: usize = std::mem::offset_of!(libc::tcp_info, tcpi_unacked) / size_of::<u32>();
const BACKOFF_AT: usize = std::mem::offset_of!(libc::tcp_info, tcpi_backoff);

sockopt_impl!(
    TcpInfo,
    GetOnly,
    libc::SOL_TCP,
    libc::TCP_INFO,
    [u32; INFO_WORDS]
);

const CWND: u16 = 77;
/// Congestion window, in segments, with which a kernel begins a connection (RFC 6928).
const OF_A_NEW_ONE: u32 = 10;

fn cwnd_of(stream: &TcpStream) -> u32 {
    getsockopt(&stream.as_fd(), TcpInfo).unwrap()[CWND_AT]
}

/// Returns the number of segments that TCP believes to be on their way.
pub fn in_flight_of(stream: &TcpStream) -> u32 {
    getsockopt(&stream.as_fd(), TcpInfo).unwrap()[UNACKED_AT]
}

/// Returns how often TCP has doubled its retransmission timeout.
pub fn backoff_of(stream: &TcpStream) -> u8 {
    let words = getsockopt(&stream.as_fd(), TcpInfo).unwrap();
    words[BACKOFF_AT / size_of::<u32>()].to_ne_bytes()[BACKOFF_AT % size_of::<u32>()]
}

/// Makes this thread's namespace the node's own, so that the program recognises the node's sockets.
pub fn in_this_namespace(node: &Node) {
    let netns = baton_net::netns::cookie().unwrap();
    node.change(|settings| settings.netns = netns);
}

fn send_with(node: &Node, client: &Client, cwnd: u16) {
    let tcb = TcbPart {
        cwnd,
        ..linux_tcb()
    };
    send(node, &adopt_with(client, tcb), &client.get(COOKIE));
}

#[test]
fn the_new_socket_begins_with_it() {
    let _host = own_host();
    let listener = listen(WEB);
    let node = attached();
    in_this_namespace(&node);
    for (cwnd, begins, counted) in [
        (CWND, CWND.into(), &[ADOPTED, &[("ds_window", 1)]].concat()),
        (0, OF_A_NEW_ONE, &ADOPTED.to_vec()),
    ] {
        let client = Client::fresh();
        send_with(&node, &client, cwnd);
        let (stream, _) = accept(&listener);
        node.expect(counted);
        assert_eq!(cwnd_of(&stream), begins);
    }
}

/// Apache, and programs in Java and Go, listen on one IPv6 socket for both.
#[test]
fn also_on_a_listener_for_both_ipv6_and_ipv4() {
    let _host = own_host();
    let any = std::net::Ipv6Addr::UNSPECIFIED;
    let listener = std::net::TcpListener::bind((any, WEB.port())).unwrap();
    let node = attached();
    in_this_namespace(&node);
    send_with(&node, &Client::fresh(), CWND);
    let (stream, _) = accept(&listener);
    node.expect(&[ADOPTED, &[("ds_window", 1)]].concat());
    assert_eq!(cwnd_of(&stream), u32::from(CWND));
}

#[test]
fn a_socket_of_another_namespace_is_left_alone() {
    let _host = own_host();
    let listener = listen(WEB);
    let node = attached();
    let client = Client::fresh();
    send_with(&node, &client, CWND);
    let (stream, _) = accept(&listener);
    node.expect(ADOPTED);
    assert_eq!(cwnd_of(&stream), OF_A_NEW_ONE);
}

#[test]
fn the_owner_gives_it_away() {
    let _host = own_host();
    let mut live = Live::adopted_at(routed());
    in_this_namespace(&live.node);
    // The connections stay open, because closing one would send a segment.
    let mut open = Vec::new();
    // A window that is little larger than a new connection's is not worth giving away.
    for (cwnd, given) in [(CWND, CWND..CWND + 3), (0, 0..1)] {
        live.client = Client::fresh();
        send_with(&live.node, &live.client, cwnd);
        let stream = accept(&live.listener).0;
        open.push(std::mem::replace(&mut live.stream, stream));
        expect_bytes(&live.stream, GET);
        (&live.stream).write_all(ANSWER).unwrap();
        live.response();
        live.forward(&live.ack());
        live.node.look();
        let request = live.request().payload(ELSEWHERE);
        live.forwards(&request, HANDED_ON);
        let Message::Adopt { tcb, .. } = live.message_to(ds(1), ds_mac(1)).message else {
            panic!("not an ADOPT");
        };
        live.message_to(CS, CS_MAC);
        assert!(given.contains(&tcb.cwnd), "{} of {cwnd}", tcb.cwnd);
    }
}
