//! Packets of connections that have no entry here. The data servers are asked. After that the client gets no answer,
//! and after the grace it gets a RST.

use std::time::{Duration, Instant};

use crate::prelude::*;

const CLAIM: Counted<'_> = &[("cs_claim", 1)];
const STRAY: Counted<'_> = &[("cs_stray", 1)];
const RESET: Counted<'_> = &[("cs_stray_reset", 1)];
const UNCLAIMED: Counted<'_> = &[("cs_unclaimed", 1)];

/// A packet with ACK and without RST may belong to a connection, so it causes a CLAIM.
#[test]
fn the_data_servers_are_asked() {
    let node = Node::cs();
    let kinds: [(&str, fn(Segment) -> Segment); 6] = [
        ("ACK", |packet| packet),
        ("data", |packet| {
            packet.flags("PA").payload("GET / HTTP/1.1\r\n\r\n")
        }),
        ("FIN", |packet| packet.flags("FA")),
        ("no TCP options", |packet| packet.options([])),
        ("IP options", |packet| packet.ip_options([1; 40])),
        ("another service", |packet| packet.to(SMTP)),
    ];
    for (name, change) in kinds {
        let client = Client::fresh();
        let packet = change(client.later(7, 100, 100));
        let seen = node.run(&packet.frame());
        seen.expect_of(name, Tx, CLAIM);
        let message = sent(&node, &seen);
        let client = Client {
            service: packet.to,
            ..client
        };
        assert_eq!(message.message, claim(&client, 0), "{name}");
        assert_eq!(message.from, CS, "{name}");
        assert!([ds(0), ds(1), ds(2)].contains(&message.to), "{name}");
        assert_eq!(message.packet, packet.packet(), "{name}");
        assert!(node.tcb(&client).is_none(), "{name}");
    }
}

/// The data server that is asked first differs from flow to flow, so that no data server has all the work.
#[test]
fn not_always_the_same_is_asked_first() {
    let node = Node::cs();
    let mut first: Vec<_> = (0..60)
        .map(|_| {
            let packet = Client::fresh().later(7, 1, 1);
            sent(&node, &node.run(&packet.frame()).expect(Tx, CLAIM)).to
        })
        .collect();
    first.sort();
    first.dedup();
    assert_eq!(first, [ds(0), ds(1), ds(2)]);
}

/// Where the policy chooses data servers by the client's address, the one that it chooses is asked first.
#[test]
fn whoever_the_policy_names_is_asked_first() {
    let node = Node::cs();
    for last in 1..30 {
        let client = Client {
            address: std::net::SocketAddrV4::new([203, 0, 113, last].into(), 4000),
            ..Client::of(BY_CLIENT)
        };
        let get = client.get(node.cookie(&client));
        let seen = node.run(&get.frame()).expect(Tx, &[("cs_adopt", 1)]);
        let owner = sent(&node, &seen).to;
        node.forget(&client);
        let later = client.later(7, 5, 5);
        assert_eq!(
            sent(&node, &node.run(&later.frame()).expect(Tx, CLAIM)).to,
            owner
        );
    }
}

/// The question or the answer is lost: the client's next packet asks again, beginning with another data server.
#[test]
fn asked_again() {
    let node = Node::cs();
    let packet = Client::fresh().later(7, 1, 1).frame();
    let first = sent(&node, &node.run(&packet).expect(Tx, CLAIM)).to;
    std::thread::sleep(Duration::from_millis(200));
    let second = sent(&node, &node.run(&packet).expect(Tx, CLAIM)).to;
    assert_ne!(first, second);
}

/// A packet that comes while an answer is awaited does not ask again.
#[test]
fn while_an_answer_is_awaited() {
    let node = Node::cs();
    for _ in 0..100 {
        let packet = Client::fresh().later(7, 1, 1).frame();
        let begin = Instant::now();
        node.run(&packet).expect(Tx, CLAIM);
        let seen = node.run(&packet);
        // Only within this time the second packet certainly came before the question counted as lost.
        if begin.elapsed() < Duration::from_millis(100) {
            seen.expect(Drop, STRAY);
            return;
        }
    }
    panic!("this machine takes more than 100 ms for two packets");
}

/// Within the grace a packet gets no answer, however often it comes.
#[test]
fn silence_within_the_grace() {
    let node = Node::cs();
    let packet = Client::fresh().later(7, 100, 100);
    node.run(&packet.frame()).expect(Tx, CLAIM);
    node.run(&nobody_has(&node, &packet))
        .expect(Drop, UNCLAIMED);
    for _ in 0..5 {
        node.run(&packet.frame()).expect(Drop, STRAY);
    }
}

/// A connection that was handed over while the data servers were asked may have been missed, so they are asked again
/// after the grace.
#[test]
fn asked_once_more_before_the_end() {
    let node = Node::cs();
    node.change(|settings| settings.stray_grace_ns = 300_000_000);
    let packet = Client::fresh().later(7, 100, 100);
    node.run(&packet.frame()).expect(Tx, CLAIM);
    node.run(&nobody_has(&node, &packet))
        .expect(Drop, UNCLAIMED);
    std::thread::sleep(Duration::from_millis(400));
    node.run(&packet.frame()).expect(Tx, CLAIM);
    node.run(&nobody_has(&node, &packet))
        .expect(Drop, UNCLAIMED);
    node.run(&packet.frame()).expect(Tx, RESET);
}

/// As long as no data server has answered that the connection is nowhere, the client gets no RST.
#[test]
fn no_answer_no_rst() {
    let node = Node::cs();
    node.change(|settings| settings.stray_grace_ns = 0);
    let packet = Client::fresh().later(7, 100, 100).frame();
    for _ in 0..3 {
        node.run(&packet).expect(Tx, CLAIM);
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// A NONE to a question of which nothing is noted here is dropped, and the next packet asks again.
#[test]
fn nobody_asked() {
    let node = Node::cs();
    let packet = Client::fresh().later(7, 100, 100);
    node.run(&nobody_has(&node, &packet))
        .expect(Drop, UNCLAIMED);
    node.run(&packet.frame()).expect(Tx, CLAIM);
}

/// Packets by name. RFC 9293, 3.5.2: the RST's sequence number is the packet's acknowledgement number. A RST to a packet
/// without ACK acknowledges all of that packet, which is so many bytes.
const CASES: &[(&str, fn(Segment) -> Segment, Option<u32>)] = &[
    ("ACK", |packet| packet, None),
    ("data", |packet| packet.flags("PA").payload(GET), None),
    ("FIN ACK", |packet| packet.flags("FA"), None),
    (
        "data without ACK",
        |packet| packet.flags("P").payload("0123456789"),
        Some(10),
    ),
    ("FIN without ACK", |packet| packet.flags("F"), Some(1)),
    ("no flags", |packet| packet.flags(""), Some(0)),
    (
        "IP options and a big payload",
        |packet| {
            packet
                .ip_options([1; 40])
                .flags("PA")
                .payload(vec![7; 1300])
        },
        None,
    ),
];

#[test]
fn after_the_grace_a_rst() {
    let node = Node::cs();
    node.change(|settings| settings.stray_grace_ns = 0);
    for (name, change, acknowledged) in CASES {
        let client = Client::fresh();
        let packet = change(client.later(7, 100, 100));
        unknown(&node, &packet);
        let seen = node.run(&packet.frame());
        seen.expect_of(name, Tx, RESET);
        let tcp = seen.packet().tcp().unwrap();
        let (flags, seq, ack) = match acknowledged {
            None => ("R", packet.ack, 0),
            Some(bytes) => ("RA", 0, packet.seq.wrapping_add(*bytes)),
        };
        assert_eq!(tcp.flags(), flags, "{name}");
        assert_eq!(tcp.header.sequence_number, seq, "{name}");
        assert_eq!(tcp.header.acknowledgment_number, ack, "{name}");
        assert_eq!(seen.frame.len(), 54, "{name}");
        assert_eq!(seen.packet().to(), *client.address.ip(), "{name}");

        // After the RST everything begins anew.
        unknown(&node, &packet);
    }
}

/// A client that has gone away sends its RST only once. So each RST asks for its owner among the data servers, and
/// nothing is noted here.
#[test]
fn a_rst_is_asked_for() {
    let node = Node::cs();
    node.change(|settings| settings.stray_grace_ns = 0);
    for flags in ["R", "RA", "FRA"] {
        let client = Client::fresh();
        // Another packet of that connection came before, and has no answer yet.
        node.run(&client.later(7, 100, 100).frame())
            .expect(Tx, CLAIM);
        let rst = client.later(7, 100, 100).flags(flags);
        for _ in 0..3 {
            let seen = node.run(&rst.frame()).expect(Tx, CLAIM);
            let message = sent(&node, &seen);
            assert_eq!(message.message, claim(&client, 0), "{flags}");
            assert_eq!(message.packet, rst.packet(), "{flags}");
        }
        assert!(node.tcb(&client).is_none(), "{flags}");
    }
}

/// If the service has no data server, none has the connection.
#[test]
fn a_rst_to_nobody() {
    let node = Node::cs();
    let rst = Client::of(EMPTY).later(7, 100, 100).flags("R");
    node.run(&rst.frame()).expect(Drop, &[("cs_rst", 1)]);
}

/// A RST with a valid cookie does not open a connection.
#[test]
fn a_rst_in_place_of_the_request() {
    let node = Node::cs();
    let client = Client::fresh();
    let cookie = node.cookie(&client);
    let rst = client.ack(cookie).flags("RA");
    node.run(&rst.frame()).expect(Drop, &[("cs_rst", 1)]);
    assert!(node.tcb(&client).is_none());
}

/// Runs the first packet of a connection that nobody has. If it may be a connection's, the data servers are asked.
#[track_caller]
fn unknown(node: &Node, packet: &Segment) {
    if packet.flags.contains('A') {
        node.run(&packet.frame()).expect(Tx, CLAIM);
        node.run(&nobody_has(node, packet)).expect(Drop, UNCLAIMED);
    } else {
        node.run(&packet.frame()).expect(Drop, STRAY);
    }
}

/// The NONE of the last data server that was asked.
fn nobody_has(node: &Node, packet: &Segment) -> Vec<u8> {
    let client = packet.client();
    let message = none(&client, 3, false);
    node.said_by(2, &message, packet)
}
