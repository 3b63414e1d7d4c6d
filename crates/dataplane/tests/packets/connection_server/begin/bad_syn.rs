//! Segments with SYN that are not valid SYNs.

use std::net::SocketAddrV4;

use crate::{
    options::{NOP, SACK, join, linux, mss, wscale},
    prelude::*,
    table::{self, Case, Out},
};

#[test]
fn options_whose_lengths_lie() {
    let lies: [(&str, Vec<u8>); 11] = [
        ("length 0", vec![2, 0, 5, 180]),
        ("length 1", vec![2, 1, 5, 180]),
        ("length 0 of an unknown option", vec![254, 0, 0, 0]),
        ("length 1 of an unknown option", vec![254, 1, 0, 0]),
        ("MSS reaches past the end", vec![1, 1, 2, 4]),
        ("scale reaches past the end", vec![1, 1, 3, 3]),
        (
            "timestamps reach past the end",
            join([&mss(1460)[..], &[8, 10, 0, 0]]),
        ),
        ("unknown option of 255 bytes", vec![253, 255, 0, 0]),
        ("a kind without a length", vec![1, 1, 1, 2]),
        (
            "a kind without a length, at byte 40",
            join([&[1; 39][..], &[3]]),
        ),
        (
            "good options, then a lie",
            join([&mss(1460)[..], &SACK, &wscale(7), &NOP, &[30, 1]]),
        ),
    ];
    let cases = lies.map(|(name, options)| Case {
        name,
        input: Client::fresh().syn().options(options).frame(),
        verdict: Drop,
        out: Out::Nothing,
        counted: &[("cs_syn_bad_options", 1)],
    });
    table::run(&Node::cs(), cases.into());
}

#[test]
fn flags_that_exclude_each_other() {
    const BAD_TCP: Counted<'_> = &[("bad_tcp", 1)];
    let cases = [
        ("SYN ACK", "SA"),
        ("SYN FIN", "SF"),
        ("SYN RST", "SR"),
        ("SYN FIN ACK", "SFA"),
        ("SYN RST ACK", "SRA"),
        ("every flag", "FSRPAUEC"),
    ]
    .map(|(name, flags)| Case {
        name,
        input: Client::fresh().syn().flags(flags).frame(),
        verdict: Drop,
        out: Out::Nothing,
        counted: BAD_TCP,
    });
    table::run(&Node::cs(), cases.into());
}

/// RFC 9293, 3.5.2: the RST acknowledges all sequence numbers that the SYN occupied.
#[test]
fn without_a_data_server_the_syn_is_reset() {
    let node = Node::cs();
    let syns: [(&str, fn(Segment) -> Segment, u32); 4] = [
        ("plain", |syn| syn, 1),
        ("without options", |syn| syn.options([]), 1),
        ("with data", |syn| syn.payload("GET / HTTP/1.1\r\n\r\n"), 19),
        (
            "with IP options",
            |syn| syn.ip_options([1; 8]).options(linux(1)),
            1,
        ),
    ];
    for (name, change, taken) in syns {
        let client = Client::of(EMPTY);
        let seen = node.run(&change(client.syn()).frame());
        let seen = seen.expect(Tx, &[("cs_no_data_server", 1)]);
        let (packet, tcp) = (seen.packet(), seen.packet().tcp().unwrap());
        assert_eq!(tcp.flags(), "RA", "{name}");
        assert_eq!(
            tcp.header.acknowledgment_number,
            client.isn.wrapping_add(taken),
            "{name}"
        );
        assert_eq!(tcp.header.sequence_number, 0, "{name}");
        assert_eq!(ends(&packet, &tcp), (client.service, client.address));
        assert_eq!(seen.frame.len(), 54, "{name}");
    }
}

/// In the map, port 0 stands for the address itself, so no service can be at port 0.
#[test]
fn port_0_is_no_port() {
    let node = Node::cs();
    let client = Client::of(SocketAddrV4::new(CLUSTER, 0));
    for frame in [client.syn().frame(), client.get(7).frame()] {
        node.run(&frame).expect(Drop, &[("bad_tcp", 1)]);
    }
}
