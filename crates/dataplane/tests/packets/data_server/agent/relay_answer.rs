//! Answers of a server in a container: packets for the relay's sockets are marked, so that a routing rule keeps them on
//! this host, and every other packet goes its way unchanged.

use std::{
    io::Read as _,
    net::{SocketAddr, SocketAddrV4, TcpListener, TcpStream},
    os::fd::AsFd as _,
};

use baton_abi::{MARK_RELAY_LOCAL, MARK_RELAY_SOCKET};
use baton_dataplane::sys;
use etherparse::{EtherType, IpNumber};
use socket2::{Domain, Socket, Type};

use crate::prelude::*;

/// The verdict with which a tcx program leaves the packet to what comes after that program.
const GO_ON: u32 = u32::MAX;
/// A mark that a packet may have before the program sees it.
const ANOTHER_MARK: u32 = 0x1234;

/// Returns the address of the server in the container, which in these tests is on the same host.
fn server() -> SocketAddrV4 {
    SocketAddrV4::new(ds(0), 8080)
}

/// Connects to the server in a client's name, from a socket with this mark. Returns the relay's end and the server's
/// end.
fn connect(listener: &TcpListener, mark: u32) -> (TcpStream, TcpStream) {
    let relay = socket(mark);
    relay
        .connect(&listener.local_addr().unwrap().into())
        .unwrap();
    (relay.into(), accept(listener).0)
}

fn socket(mark: u32) -> Socket {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_mark(mark).unwrap();
    let any_port = SocketAddr::from((LOCAL_CLIENT, 0));
    socket.bind(&any_port.into()).unwrap();
    socket
}

fn v4(address: SocketAddr) -> SocketAddrV4 {
    match address {
        SocketAddr::V4(address) => address,
        SocketAddr::V6(address) => panic!("{address} is not IPv4"),
    }
}

/// Returns what the server sends to the client at this address.
fn answer(to: SocketAddrV4) -> Segment {
    Segment {
        from: server(),
        to,
        seq: 1,
        ack: 1,
        flags: "PA",
        options: Vec::new(),
        ip_options: Vec::new(),
        payload: GET.to_vec(),
    }
}

fn answer_to(relay: &TcpStream) -> Segment {
    answer(v4(relay.local_addr().unwrap()))
}

/// Returns the mark of this frame after the program has seen it; before, it was [`ANOTHER_MARK`]. Checks that the
/// program changes nothing else.
#[track_caller]
fn mark_after(node: &Node, frame: &[u8]) -> u32 {
    let mut context = [0; 192];
    context[8..12].copy_from_slice(&ANOTHER_MARK.to_ne_bytes()); // __sk_buff.mark
    let program = &node.data_server().relay_answer;
    let outcome = sys::run_on_frame(program.as_fd(), frame, Some(&mut context), 1).unwrap();
    assert_eq!((outcome.verdict, &outcome.frame[..]), (GO_ON, frame));
    u32::from_ne_bytes(context[8..12].try_into().unwrap())
}

#[track_caller]
fn is_kept(node: &Node, frame: &[u8]) {
    node.look();
    assert_eq!(mark_after(node, frame), MARK_RELAY_LOCAL);
    assert_eq!(node.moved(), [("ds_relay_answer".to_owned(), 1)].into());
}

#[track_caller]
fn goes_its_way(node: &Node, name: &str, frame: &[u8]) {
    node.look();
    assert_eq!(mark_after(node, frame), ANOTHER_MARK, "{name}");
    assert!(node.moved().is_empty(), "{name}: {:?}", node.moved());
}

#[test]
fn what_a_relays_socket_waits_for_is_kept() {
    let _host = own_host();
    let node = Node::ds();
    let (relay, _server) = connect(&listen(server()), MARK_RELAY_SOCKET);
    let plain = answer_to(&relay);
    is_kept(&node, &plain.frame());
    // The program looks at neither numbers nor flags, because the socket judges these.
    for flags in ["A", "SA", "FA", "R", "RA"] {
        is_kept(&node, &plain.clone().flags(flags).seq(77).frame());
    }
    is_kept(&node, &plain.clone().payload([]).frame());
    is_kept(&node, &padded(plain.clone().payload([]).frame(), 6));
    is_kept(&node, &plain.clone().payload(vec![b'x'; 1460]).frame());
    is_kept(&node, &plain.clone().options([1; 40]).frame());
    is_kept(&node, &plain.ip_options([1; 40]).options([1; 40]).frame());
}

/// Answers are kept on this host in every state of the connection: while it begins, while either end closes, and in
/// TIME_WAIT.
#[test]
fn in_every_state_of_the_connection() {
    let _host = own_host();
    let node = Node::ds();
    let listener = listen(server());

    // Nobody answers at this address, so the connection stays in SYN_SENT for as long as the test takes.
    let beginning = socket(MARK_RELAY_SOCKET);
    beginning.set_nonblocking(true).unwrap();
    let silent = SocketAddrV4::new([203, 0, 113, 77].into(), 80);
    beginning
        .connect(&SocketAddr::V4(silent).into())
        .expect_err("nobody is there");
    let to = v4(beginning.local_addr().unwrap().as_socket().unwrap());
    let syn_ack = Segment {
        from: silent,
        ..answer(to).flags("SA").payload([])
    };
    is_kept(&node, &syn_ack.frame());

    let (relay, server) = connect(&listener, MARK_RELAY_SOCKET);
    let answer = answer_to(&relay).frame();
    relay.shutdown(std::net::Shutdown::Write).unwrap();
    is_kept(&node, &answer); // FIN_WAIT
    assert_eq!((&server).read(&mut [0]).unwrap(), 0);
    drop(server);
    assert_eq!((&relay).read(&mut [0]).unwrap(), 0);
    drop(relay);
    is_kept(&node, &answer); // TIME_WAIT

    let (relay, server) = connect(&listener, MARK_RELAY_SOCKET);
    let answer = answer_to(&relay).frame();
    drop(server);
    assert_eq!((&relay).read(&mut [0]).unwrap(), 0);
    is_kept(&node, &answer); // CLOSE_WAIT
    drop(relay);
    // The kernel ends LAST_ACK as soon as it gets to it, and then no socket waits for the packet.
    until(|| mark_after(&node, &answer) == ANOTHER_MARK);
    goes_its_way(&node, "closed", &answer);
}

#[test]
fn what_no_relays_socket_waits_for_goes_its_way() {
    let _host = own_host();
    let node = Node::ds();
    let listener = listen(server());
    let (relay, accepted) = connect(&listener, MARK_RELAY_SOCKET);
    let good = answer_to(&relay);

    let others = [
        ("without a mark", 0),
        ("the packets' mark", MARK_RELAY_LOCAL),
        ("another mark", ANOTHER_MARK),
    ];
    for (name, mark) in others {
        let (other, server) = connect(&listener, mark);
        let answer = answer_to(&other).frame();
        goes_its_way(&node, name, &answer);
        other.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!((&server).read(&mut [0]).unwrap(), 0);
        drop(server);
        assert_eq!((&other).read(&mut [0]).unwrap(), 0);
        drop(other);
        goes_its_way(&node, &format!("{name}, TIME_WAIT"), &answer);
    }

    let port = |at: SocketAddrV4| SocketAddrV4::new(*at.ip(), at.port() ^ 1);
    let host = |at: SocketAddrV4| SocketAddrV4::new(ds(1), at.port());
    let from = |from| Segment {
        from,
        ..good.clone()
    };
    let strangers = [
        ("from another port", from(port(good.from))),
        ("from another host", from(host(good.from))),
        ("to another port", good.clone().to(port(good.to))),
        ("to another host", good.clone().to(host(good.to))),
        // These packets find sockets that are not a relay's: the accepted one and the listener.
        ("to the server", from(good.to).to(good.from)),
        ("to the listener", Client::of(server()).syn()),
    ];
    for (name, packet) in strangers {
        goes_its_way(&node, name, &packet.frame());
    }
    drop(accepted);
}

/// A handshake that has only begun has no full socket, so there is no mark to read.
#[test]
fn a_request_socket_is_none_of_the_relays() {
    let _host = own_host();
    let node = Node::ds();
    let listener = socket2::SockRef::from(&listen(WEB)).try_clone().unwrap();
    listener.set_mark(MARK_RELAY_SOCKET).unwrap();
    let client = Client::fresh();
    send_plain(&client.syn());
    goes_its_way(&node, "a request socket", &client.ack(1).frame());
}

/// A packet that is not surely a whole TCP segment is left alone, even if its other fields fit a relay's socket.
#[test]
fn what_is_malformed_goes_its_way() {
    let _host = own_host();
    let node = Node::ds();
    let (relay, _server) = connect(&listen(server()), MARK_RELAY_SOCKET);
    let good = answer_to(&relay);
    let frame = good.clone().payload([]).frame();
    let at = |at: usize, bytes: &[u8]| patched(frame.clone(), IP + at, bytes);
    let packet = good.packet();
    let cases = [
        ("version 6", at(0, &[0x65])),
        ("a short IP header", at(0, &[0x44])),
        ("longer than the frame", at(2, &[0x40, 0])),
        ("shorter than its headers", at(2, &[0, 39])),
        ("more fragments", at(6, &[0x20, 0])),
        ("a later fragment", at(6, &[0, 1])),
        ("UDP", at(9, &[17])),
        ("a short TCP header", at(32, &[0x40])),
        ("a long TCP header", at(32, &[0xf0])),
        ("cut behind IP", frame[..IP + 20].to_vec()),
        ("cut within TCP", frame[..IP + 39].to_vec()),
        (
            "IPv6 by its EtherType",
            ethernet(CLIENT_MAC, CS_MAC, EtherType::IPV6, &packet),
        ),
        (
            "inside another packet",
            ethernet(
                CLIENT_MAC,
                CS_MAC,
                EtherType::IPV4,
                &ip_packet(IpNumber::IPV4, ds(0), *good.to.ip(), &packet),
            ),
        ),
    ];
    is_kept(&node, &frame);
    for (name, frame) in cases {
        goes_its_way(&node, name, &frame);
    }
}
