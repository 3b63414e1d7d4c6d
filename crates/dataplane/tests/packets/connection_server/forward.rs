//! Packets of known connections go on to the owner, and only their Ethernet addresses change.

use baton_abi::{
    DATA_SERVER_LOCAL, DATA_SERVER_PRESENT, DATA_SERVER_ROUTED, DataServer, TCB_ADOPTING, TCB_FIN,
    TCB_RST, TCB_WAITING,
};

use crate::prelude::*;

/// A client whose request is with data server 0, and its cookie.
pub fn adopted(node: &Node) -> (Client, u32) {
    let client = Client::of(WEB);
    node.set_choices(0, &[0, 0, 0]);
    let cookie = node.cookie(&client);
    node.run(&client.get(cookie).frame())
        .expect(Tx, &[("cs_adopt", 1)]);
    node.set_choices(0, &[0, 1, 2]);
    (client, cookie)
}

struct Case {
    name: &'static str,
    packet: fn(&Client, u32) -> Segment,
    /// The counters that move in addition to the two of forwarding.
    also: &'static [(&'static str, u64)],
    /// The state of the entry afterwards.
    state: u32,
}

const CASES: &[Case] = &[
    Case {
        name: "an ACK",
        packet: |client, cookie| client.later(cookie, GET.len(), 1000),
        also: &[],
        state: 0,
    },
    Case {
        name: "an ACK without timestamps",
        packet: |client, cookie| client.later(cookie, GET.len(), 1000).options([]),
        also: &[],
        state: 0,
    },
    Case {
        name: "selective ACK of three blocks",
        packet: |client, cookie| {
            let blocks = [[1u8, 1, 5, 26].as_slice(), &[3; 24]].concat();
            client.later(cookie, GET.len(), 1000).options(blocks)
        },
        also: &[],
        state: 0,
    },
    Case {
        name: "the next request",
        packet: |client, cookie| {
            client
                .later(cookie, GET.len(), 1000)
                .flags("PA")
                .payload(GET)
        },
        also: &[],
        state: 0,
    },
    Case {
        name: "more of the first request",
        packet: |client, cookie| {
            client
                .later(cookie, GET.len(), 1)
                .flags("PA")
                .payload("more")
        },
        also: &[],
        state: 0,
    },
    Case {
        name: "the handshake's ACK, late",
        packet: |client, cookie| client.ack(cookie),
        also: &[],
        state: TCB_ADOPTING | TCB_WAITING,
    },
    Case {
        name: "a keepalive probe",
        packet: |client, cookie| {
            let ack = client.later(cookie, GET.len(), 1000);
            let before = ack.seq.wrapping_sub(1);
            ack.seq(before)
        },
        also: &[],
        state: 0,
    },
    Case {
        name: "no flags at all",
        packet: |client, cookie| client.later(cookie, GET.len(), 1000).flags(""),
        also: &[],
        state: TCB_ADOPTING | TCB_WAITING,
    },
    Case {
        name: "IP options",
        packet: |client, cookie| client.later(cookie, GET.len(), 1).ip_options([1; 40]),
        also: &[],
        state: 0,
    },
    Case {
        name: "bigger than LCCP could carry",
        packet: |client, cookie| {
            client
                .later(cookie, GET.len(), 1)
                .flags("PA")
                .payload(vec![b'x'; 1448])
        },
        also: &[],
        state: 0,
    },
    Case {
        name: "FIN",
        packet: |client, cookie| client.later(cookie, GET.len(), 1000).flags("FA"),
        also: &[("cs_fin", 1)],
        state: TCB_FIN,
    },
    Case {
        name: "RST",
        packet: |client, cookie| client.later(cookie, GET.len(), 1000).flags("R"),
        also: &[("cs_rst", 1)],
        state: TCB_ADOPTING | TCB_WAITING | TCB_RST,
    },
    Case {
        name: "RST ACK",
        packet: |client, cookie| client.later(cookie, GET.len(), 1000).flags("RA"),
        also: &[("cs_rst", 1)],
        state: TCB_RST,
    },
    Case {
        name: "FIN and RST",
        packet: |client, cookie| client.later(cookie, GET.len(), 1000).flags("FRA"),
        also: &[("cs_fin", 1), ("cs_rst", 1)],
        state: TCB_FIN | TCB_RST,
    },
];

#[test]
fn only_macs_change() {
    let node = Node::cs();
    for case in CASES {
        let (client, cookie) = adopted(&node);
        let packet = (case.packet)(&client, cookie);
        let seen = node.run(&packet.frame());
        let bytes = packet.packet().len() as u64;
        let counted = [&[("cs_forward", 1), ("cs_forward_bytes", bytes)], case.also].concat();
        seen.expect_of(case.name, Tx, &counted);
        assert_eq!(seen.frame, readdressed(&seen.input, 0), "{}", case.name);
        let entry = node.tcb(&client).unwrap();
        assert_eq!(u32::from(entry.state), case.state, "{}", case.name);
        assert_eq!(entry.owner, 0, "{}", case.name);
    }
}

#[test]
fn padding_is_forwarded_and_not_counted() {
    let node = Node::cs();
    let (client, cookie) = adopted(&node);
    let ack = padded(client.later(cookie, GET.len(), 1).options([]).frame(), 6);
    let seen = node
        .run(&ack)
        .expect(Tx, &[("cs_forward", 1), ("cs_forward_bytes", 40)]);
    assert_eq!(seen.frame, readdressed(&ack, 0));
}

#[test]
fn where_the_owner_is() {
    let places: [(&str, fn(&mut DataServer), Verdict); 3] = [
        (
            "here",
            |server| server.flags = (DATA_SERVER_PRESENT | DATA_SERVER_LOCAL) as u8,
            Pass,
        ),
        ("on the interface it came from", |_| (), Tx),
        (
            "on another interface",
            |server| server.ifindex = 77,
            Redirect,
        ),
    ];
    for (name, place, verdict) in places {
        let node = Node::cs();
        let (client, cookie) = adopted(&node);
        let mut server = data_server(0);
        place(&mut server);
        node.plane().set_data_server(0, &server).unwrap();
        let ack = client.later(cookie, GET.len(), 1).frame();
        let seen = node.run(&ack);
        let bytes = ack.len() as u64 - 14;
        seen.expect_of(
            name,
            verdict,
            &[("cs_forward", 1), ("cs_forward_bytes", bytes)],
        );
        assert_eq!(seen.frame, readdressed(&ack, 0), "{name}");
    }
}

#[test]
fn behind_a_router_it_travels_inside_forward() {
    let node = Node::cs();
    let (client, cookie) = adopted(&node);
    let server = DataServer {
        flags: (DATA_SERVER_PRESENT | DATA_SERVER_ROUTED) as u8,
        ..data_server(0)
    };
    node.plane().set_data_server(0, &server).unwrap();

    let ack = client.later(cookie, GET.len(), 1000);
    let bytes = ack.packet().len() as u64;
    let seen = node
        .run(&ack.frame())
        .expect(Tx, &[("cs_forward", 1), ("cs_forward_bytes", bytes)]);
    let sent = sent(&node, &seen);
    assert_eq!(sent.message, crate::lccp::forward(&client));
    assert_eq!((sent.to, &sent.packet), (ds(0), &ack.packet()));
    assert_eq!(seen.packet().ethernet.destination, ds_mac(0));

    let fits = biggest(&client, cookie);
    let fits = fits.seq(client.later(cookie, GET.len(), 0).seq);
    let bytes = fits.packet().len() as u64;
    node.run(&fits.frame())
        .expect(Tx, &[("cs_forward", 1), ("cs_forward_bytes", bytes)]);
    let too_big = fits.clone().payload([&fits.payload[..], b"y"].concat());
    node.run(&too_big.frame())
        .expect(Drop, &[("cs_too_big", 1)]);
}

/// The numbers in the entry only grow, whatever packet comes late.
#[test]
fn the_entry_remembers_how_far_the_client_is() {
    let node = Node::cs();
    let (client, cookie) = adopted(&node);
    let far = client.later(cookie, 5000, 7000).payload("x");
    node.run(&far.frame());
    node.run(&client.later(cookie, 100, 200).payload("y").frame());
    let entry = node.tcb(&client).unwrap();
    assert_eq!(
        (entry.last_seq, entry.last_ack),
        (far.seq.wrapping_add(1), far.ack)
    );
}

/// A RST is noted, but it may be forged: the client's next packet shows that the connection still lives.
#[test]
fn data_after_a_rst_brings_the_entry_back() {
    let node = Node::cs();
    let (client, cookie) = adopted(&node);
    node.run(&client.later(cookie, GET.len(), 0).flags("R").frame());
    let rst = TCB_ADOPTING | TCB_WAITING | TCB_RST;
    assert_eq!(u32::from(node.tcb(&client).unwrap().state), rst);
    node.run(&client.later(cookie, GET.len(), 1000).frame());
    assert_eq!(u32::from(node.tcb(&client).unwrap().state), 0);
}

#[test]
fn data_after_a_fin_does_not() {
    let node = Node::cs();
    let (client, cookie) = adopted(&node);
    node.run(&client.later(cookie, GET.len(), 0).flags("FA").frame());
    node.run(&client.later(cookie, GET.len() + 1, 1000).frame());
    let state = u32::from(node.tcb(&client).unwrap().state);
    assert_eq!(state, TCB_FIN);
}

#[test]
fn when_the_owner_is_gone_the_client_is_reset() {
    for name in ["an ACK", "the request again"] {
        let node = Node::cs();
        let (client, cookie) = adopted(&node);
        node.plane()
            .set_data_server(0, &DataServer::default())
            .unwrap();
        let packet = match name {
            "an ACK" => client.later(cookie, GET.len(), 1000),
            _ => client.get(cookie),
        };
        let seen = node
            .run(&packet.frame())
            .expect(Tx, &[("cs_owner_gone", 1)]);
        let tcp = seen.packet().tcp().unwrap();
        assert_eq!(tcp.flags(), "R", "{name}");
        assert_eq!(tcp.header.sequence_number, packet.ack, "{name}");
        assert_eq!(seen.frame.len(), 54, "{name}");
        assert!(node.tcb(&client).is_none(), "{name}");
    }
}

#[test]
fn a_rst_to_a_gone_owner_is_not_answered() {
    let node = Node::cs();
    let (client, cookie) = adopted(&node);
    node.plane()
        .set_data_server(0, &DataServer::default())
        .unwrap();
    let rst = client.later(cookie, GET.len(), 0).flags("R");
    node.run(&rst.frame())
        .expect(Drop, &[("cs_owner_gone", 1), ("cs_rst", 1)]);
    assert!(node.tcb(&client).is_none());
}

/// A data server's weight of 0 or its failed health check changes choices, never owners.
#[test]
fn other_choices_do_not_move_a_connection() {
    let node = Node::cs();
    let (client, cookie) = adopted(&node);
    node.set_choices(0, &[1, 2, 1]);
    let seen = node.run(&client.later(cookie, GET.len(), 1).frame());
    assert_eq!(seen.frame, readdressed(&seen.input, 0));
}

/// The frame with the Ethernet addresses with which it goes to a data server of this LAN.
fn readdressed(frame: &[u8], index: u16) -> Vec<u8> {
    patched(frame.to_vec(), 0, &[ds_mac(index), CS_MAC].concat())
}
