//! IPv4 BIG TCP: packets of more than 65,535 bytes within a host, whose IP header says that their length is 0.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream},
    thread,
    time::{Duration, Instant},
};

use socket2::{Domain, Protocol, Socket, Type};

use crate::prelude::*;

const BYTES: usize = 16 << 20;
const MOST: usize = u16::MAX as usize;

/// A link attribute of kernels since 6.3 (`include/uapi/linux/if_link.h`). The ip(8) of that time knows neither this
/// one nor the next.
const IFLA_GSO_IPV4_MAX_SIZE: u16 = 63;
const IFLA_GRO_IPV4_MAX_SIZE: u16 = 64;

/// Sets attributes of an interface (rtnetlink(7)).
fn set_link(index: u32, attributes: &[(u16, u32)]) {
    const SET_LINK: u16 = 19;
    const REQUEST_AND_ACKNOWLEDGE: u16 = 5;
    let length = 32 + 8 * attributes.len();
    let mut message = Vec::new();
    message.extend((length as u32).to_ne_bytes());
    message.extend(SET_LINK.to_ne_bytes());
    message.extend(REQUEST_AND_ACKNOWLEDGE.to_ne_bytes());
    message.extend([0; 12]);
    message.extend(index.to_ne_bytes());
    message.extend([0; 8]);
    for (sort, value) in attributes {
        message.extend(8u16.to_ne_bytes());
        message.extend(sort.to_ne_bytes());
        message.extend(value.to_ne_bytes());
    }
    let route = Domain::from(nix::libc::AF_NETLINK);
    let socket = Socket::new(route, Type::RAW, None).unwrap();
    socket.send(&message).unwrap();
    let mut answer = [0; 64];
    assert_ne!((&socket).read(&mut answer).unwrap(), 0);
    let error = i32::from_ne_bytes(answer[16..20].try_into().unwrap());
    assert_eq!(error, 0, "rtnetlink refused");
}

/// Runs the test where the kernel may send about three times as much at once on the loopback as its MTU of 65536.
fn with_big_packets(test: impl FnOnce() + Send) {
    let _host = own_host();
    let most = [IFLA_GSO_IPV4_MAX_SIZE, IFLA_GRO_IPV4_MAX_SIZE].map(|sort| (sort, 190_000));
    set_link(ARRIVES_AT, &most);
    test();
}

/// Sends [`BYTES`] bytes from one end to the other. Returns the length of the longest packet that a tap on the loopback
/// saw.
fn transfer(from: &TcpStream, to: &TcpStream) -> usize {
    let tap = Socket::new(
        Domain::PACKET,
        Type::RAW,
        Some(Protocol::from(i32::from(0x0003u16.to_be()))),
    )
    .unwrap();
    tap.set_recv_buffer_size(64 << 20).unwrap();
    tap.set_nonblocking(true).unwrap();
    let received = thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let mut from = from;
            from.write_all(&vec![b'x'; BYTES]).unwrap();
        });
        let mut all = Vec::new();
        to.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        to.take(BYTES as u64).read_to_end(&mut all).unwrap();
        sender.join().unwrap();
        all
    });
    assert!(received.len() == BYTES && received.iter().all(|byte| *byte == b'x'));
    let mut longest = 0;
    let mut frame = [std::mem::MaybeUninit::new(0); 64];
    while let Ok(bytes) = tap.recv_with_flags(&mut frame, nix::libc::MSG_TRUNC) {
        longest = longest.max(bytes);
    }
    longest
}

/// The program leaves a packet that is not for a service to the kernel, whatever the packet's header says.
#[test]
fn what_is_not_for_a_service_is_the_kernels() {
    with_big_packets(|| {
        let at = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 11), 5001);
        let listener = listen(at);
        let node = attached();
        let client = TcpStream::connect(at).unwrap();
        let (server, _) = accept(&listener);
        node.look();
        let longest = transfer(&client, &server);
        assert!(longest > MOST, "no packet was longer than {longest}");
        assert!(node.moved().is_empty(), "{:?}", node.moved());
    });
}

/// No big packet passes a door, because nobody can say where in the packet a request ends.
#[test]
fn no_big_packet_passes_a_door() {
    with_big_packets(|| {
        let listener = listen(WEB);
        let connection = connect(&listener, WEB);
        let node = attached();
        judges_nothing(&node);
        let longest = transfer(&connection.client, &connection.server);
        assert!(longest > MOST, "no packet was longer than {longest}");
        owns(&node, 0);
        node.look();
        connection.client.set_nonblocking(true).unwrap();
        let sent = (&connection.client).write(&vec![b'x'; BYTES]);
        assert!(sent.is_ok_and(|sent| sent > MOST));
        let is_dropped = || node.moved().contains_key("bad_ip");
        let until = Instant::now() + Duration::from_secs(10);
        while !is_dropped() && Instant::now() < until {
            thread::sleep(Duration::from_millis(10));
        }
        assert!(is_dropped());
    });
}

/// A connection of a service without a door gets big packets.
#[test]
fn a_connection_gets_big_packets() {
    with_big_packets(|| {
        let listener = listen(WEB);
        let connection = connect(&listener, WEB);
        assert_eq!(*connection.from.ip(), LOCAL_CLIENT);
        assert_eq!(
            connection.server.local_addr().unwrap(),
            SocketAddr::from((CLUSTER, WEB.port()))
        );
        let node = attached();
        judges_nothing(&node);
        node.look();
        let longest = transfer(&connection.client, &connection.server);
        assert!(longest > MOST, "no packet was longer than {longest}");
        let moved = node.moved();
        let counted: Vec<_> = moved.keys().map(String::as_str).collect();
        assert_eq!(counted, ["ds_delivered"]);
    });
}
