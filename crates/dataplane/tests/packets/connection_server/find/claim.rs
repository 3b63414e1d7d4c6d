//! MOVED: a data server has a connection that the connection server asked for.

use std::num::NonZeroU16;

use baton_abi::{
    DATA_SERVER_LOCAL, DATA_SERVER_PRESENT, DataServer, LCCP_TCB_SACK, LCCP_TCB_WSCALE,
    NO_DATA_SERVER, ROLE_CS, ROLE_DS, TCB_AT_DOOR, TCB_FIN,
};
use baton_wire::{Message, TcbPart};

use crate::{
    connection_server::http::{Connection, forwarded, get},
    prelude::*,
};

const MOVED: Counted<'_> = &[("cs_moved", 1)];
const MISMATCH: Counted<'_> = &[("lccp_mismatch", 1)];

#[test]
fn the_entry_is_made_anew() {
    let node = Node::cs();
    for (from, tcb, options) in [
        (0, linux_tcb(), LCCP_TCB_SACK | LCCP_TCB_WSCALE),
        (2, bare(), 0),
    ] {
        let client = Client::of(HTTP);
        let packet = client.later(7, 500, 9000).flags("PA").payload(get("/ds1/"));
        node.run(&packet.frame()).expect(Tx, &[("cs_claim", 1)]);
        // The owner's door has not judged the packet, so the packet goes there.
        let counted = [MOVED.to_vec(), forwarded(&packet)].concat();
        let seen = node
            .run(&moved(&node, from, &packet, tcb))
            .expect(Tx, &counted);
        assert_eq!(seen.packet().ethernet.destination, ds_mac(from));

        let entry = node.tcb(&client).unwrap();
        assert_eq!(
            (entry.owner, u32::from(entry.previous)),
            (from, NO_DATA_SERVER)
        );
        assert_eq!(u32::from(entry.state), TCB_AT_DOOR);
        assert_eq!(
            (entry.mss, u32::from(entry.options)),
            (tcb.mss.get(), options)
        );
        let scales = tcb
            .scales
            .map_or((0, 0), |s| (s.client.shift(), s.cluster.shift()));
        assert_eq!((entry.snd_wscale, entry.rcv_wscale), scales);
        assert_eq!(entry.pool, HTTP_SERVICE);
        let end = packet.seq.wrapping_add(packet.payload.len() as u32);
        assert_eq!((entry.last_seq, entry.last_ack), (end, packet.ack));

        // From here on the connection's packets go to its owner, and so do requests for other pools.
        let next = client
            .later(7, 500 + packet.payload.len(), 10_000)
            .flags("PA")
            .payload(get("/ds2/"));
        let seen = node.run(&next.frame()).expect(Tx, &forwarded(&next));
        assert_eq!(seen.packet().ethernet.destination, ds_mac(from));
    }
}

#[test]
fn one_that_is_being_closed() {
    let node = Node::cs();
    let client = Client::fresh();
    let fin = client.later(7, 5, 5).flags("FA");
    node.run(&moved(&node, 1, &fin, linux_tcb()))
        .expect(Drop, MOVED);
    let entry = node.tcb(&client).unwrap();
    assert_eq!(u32::from(entry.state), TCB_FIN);
}

/// A second MOVED changes nothing. An entry that is there stays, whether it is of a later handover or of another
/// connection.
#[test]
fn what_has_an_entry_keeps_it() {
    let node = Node::cs();
    let client = Client::fresh();
    let packet = client.later(7, 5, 5);
    node.run(&moved(&node, 1, &packet, linux_tcb()))
        .expect(Drop, MOVED);
    let before = node.tcb(&client);
    for from in [1, 2] {
        node.run(&moved(&node, from, &packet, bare()))
            .expect(Drop, MISMATCH);
        assert_eq!(node.tcb(&client), before);
    }
    let connection = Connection::answered(&node);
    let before = connection.entry(&node);
    node.run(&moved(&node, 2, &connection.empty(), bare()))
        .expect(Drop, MISMATCH);
    connection.is_unchanged(&node, &before);
}

#[test]
fn who_is_no_data_server_has_nothing() {
    let node = Node::cs();
    let client = Client::fresh();
    let packet = client.later(7, 5, 5);
    node.run(&moved(&node, 9, &packet, linux_tcb()))
        .expect(Drop, MISMATCH);
    node.plane()
        .set_data_server(1, &DataServer::default())
        .unwrap();
    node.run(&moved(&node, 1, &packet, linux_tcb()))
        .expect(Drop, MISMATCH);
    assert!(node.tcb(&client).is_none());
}

/// A MOVED is dropped if its packet is for no service, or if its packet is not what the message says.
#[test]
fn what_does_not_fit_together() {
    let node = Node::cs();
    let client = Client::fresh();
    let packet = client.later(7, 5, 5).payload("data");
    let good = moved(&node, 1, &packet, linux_tcb());
    let elsewhere = packet.clone().to("10.77.0.101:80".parse().unwrap());
    let cases = [
        ("no service", moved(&node, 1, &elsewhere, linux_tcb())),
        (
            "another client",
            patched(good.clone(), INNER + 12, &[1, 2, 3, 4]),
        ),
        (
            "another cluster address",
            patched(good.clone(), INNER + 16, &[1, 2, 3, 4]),
        ),
        (
            "another client port",
            patched(good.clone(), INNER + 20, &[1, 2]),
        ),
        ("another port", patched(good.clone(), INNER + 22, &[1, 2])),
        ("another length", patched(good.clone(), INNER + 2, &[0, 41])),
        ("not IPv4", patched(good.clone(), INNER, &[0x65])),
        ("no IP header", patched(good.clone(), INNER, &[0x44])),
        ("not TCP", patched(good.clone(), INNER + 9, &[17])),
        ("no TCP header", patched(good.clone(), INNER + 32, &[0x40])),
        (
            "half a TCP header",
            patched(good.clone(), INNER + 32, &[0xf0]),
        ),
    ];
    for (name, mut frame) in cases {
        tag_again(&mut frame, &key().lccp());
        node.run(&frame).expect_of(name, Drop, MISMATCH);
        assert!(node.tcb(&client).is_none(), "{name}");
    }
    node.run(&good).expect(Drop, MOVED);
}

/// A node that is also a data server first looks for the connection among its own sockets. If it is there, nobody is
/// asked.
#[test]
fn what_this_node_has_itself() {
    let _host = own_host();
    let node = Node::cs();
    node.change(|settings| {
        settings.roles = (ROLE_CS | ROLE_DS) as u8;
        settings.address = mapped(ds(1));
    });
    let own = DataServer {
        flags: (DATA_SERVER_PRESENT | DATA_SERVER_LOCAL) as u8,
        ..data_server(1)
    };
    node.plane().set_data_server(1, &own).unwrap();
    let listener = listen(WEB);
    let connection = connect(&listener, WEB);
    let client = Client {
        address: connection.from,
        service: WEB,
        isn: connection.isn,
    };
    let packet = client.ack(connection.server_isn).payload("data");
    let counted = [&[("cs_moved", 1)][..], &forwarded(&packet)].concat();
    node.run(&packet.frame()).expect(Pass, &counted);
    let entry = node.tcb(&client).unwrap();
    assert_eq!((entry.owner, u32::from(entry.state)), (1, 0));
    assert_eq!(u32::from(entry.options), LCCP_TCB_SACK | LCCP_TCB_WSCALE);

    // The other data servers are asked for a connection that is not here.
    let elsewhere = Client::fresh().later(7, 5, 5);
    let asked = node.run(&elsewhere.frame()).expect(Tx, &[("cs_claim", 1)]);
    assert_ne!(asked.packet().to(), ds(1));
}

fn bare() -> TcbPart {
    TcbPart {
        mss: NonZeroU16::new(536).unwrap(),
        scales: None,
        sack: false,
        aware: false,
        attempt: 0,
        cwnd: 0,
        resume: 0,
    }
}

pub fn moved(node: &Node, from: u16, packet: &Segment, tcb: TcbPart) -> Vec<u8> {
    let client = packet.client();
    let message = Message::Moved {
        flow: flow(&client),
        tcb,
        next: None,
        is_cut: false,
    };
    node.said_by(from, &message, packet)
}
