//! Packets of connections nobody here knows: silence, and after the grace a clear end.

use crate::{
    node::{Counted, Drop, Node, Tx},
    segment::{Client, Segment},
};

const STRAY: Counted<'_> = &[("cs_stray", 1)];
const RESET: Counted<'_> = &[("cs_stray_reset", 1)];

/// Within the grace, as often as it comes.
#[test]
fn silence_within_the_grace() {
    let node = Node::cs();
    let ack = Client::fresh().later(7, 100, 100).frame();
    for _ in 0..5 {
        node.run(&ack).expect(Drop, STRAY);
    }
}

struct Case {
    name: &'static str,
    packet: fn(Segment) -> Segment,
    flags: &'static str,
    /// The RST's numbers.
    seq: fn(&Segment) -> u32,
    ack: fn(&Segment) -> u32,
}

/// RFC 9293, 3.5.2: its sequence number is the packet's acknowledgement; of a packet without one it
/// acknowledges all.
const CASES: &[Case] = &[
    Case {
        name: "ACK",
        packet: |packet| packet,
        flags: "R",
        seq: |packet| packet.ack,
        ack: |_| 0,
    },
    Case {
        name: "data",
        packet: |packet| packet.flags("PA").payload("GET / HTTP/1.1\r\n\r\n"),
        flags: "R",
        seq: |packet| packet.ack,
        ack: |_| 0,
    },
    Case {
        name: "FIN ACK",
        packet: |packet| packet.flags("FA"),
        flags: "R",
        seq: |packet| packet.ack,
        ack: |_| 0,
    },
    Case {
        name: "data without ACK",
        packet: |packet| packet.flags("P").payload("0123456789"),
        flags: "RA",
        seq: |_| 0,
        ack: |packet| packet.seq + 10,
    },
    Case {
        name: "FIN without ACK",
        packet: |packet| packet.flags("F"),
        flags: "RA",
        seq: |_| 0,
        ack: |packet| packet.seq + 1,
    },
    Case {
        name: "no flags",
        packet: |packet| packet.flags(""),
        flags: "RA",
        seq: |_| 0,
        ack: |packet| packet.seq,
    },
    Case {
        name: "IP options and a big payload",
        packet: |packet| {
            packet
                .ip_options([1; 40])
                .flags("PA")
                .payload(vec![7; 1300])
        },
        flags: "R",
        seq: |packet| packet.ack,
        ack: |_| 0,
    },
];

#[test]
fn after_the_grace_a_rst() {
    let node = Node::cs();
    node.change(|settings| settings.stray_grace_ns = 0);
    for case in CASES {
        let client = Client::fresh();
        let packet = (case.packet)(client.later(7, 100, 100));
        node.run(&packet.frame()).expect(Drop, STRAY);
        let seen = node.run(&packet.frame());
        seen.check(Tx, RESET)
            .unwrap_or_else(|error| panic!("{}: {error}", case.name));
        let tcp = seen.packet().tcp().unwrap();
        assert_eq!(tcp.flags(), case.flags, "{}", case.name);
        assert_eq!(
            tcp.header.sequence_number,
            (case.seq)(&packet),
            "{}",
            case.name
        );
        assert_eq!(
            tcp.header.acknowledgment_number,
            (case.ack)(&packet),
            "{}",
            case.name
        );
        assert_eq!(seen.frame.len(), 54, "{}", case.name);
        assert_eq!(seen.packet().to(), *client.address.ip(), "{}", case.name);

        // Then the grace begins anew.
        node.run(&packet.frame()).expect(Drop, STRAY);
    }
}

#[test]
fn a_stray_rst_is_never_answered() {
    let node = Node::cs();
    node.change(|settings| settings.stray_grace_ns = 0);
    for flags in ["R", "RA", "FRA"] {
        let rst = Client::fresh().later(7, 100, 100).flags(flags).frame();
        for _ in 0..3 {
            node.run(&rst).expect(Drop, &[("cs_rst", 1)]);
        }
    }
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
