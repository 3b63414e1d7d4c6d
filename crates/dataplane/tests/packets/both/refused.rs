//! REFUSED: this node has no listener, so another data server gets the request, or no data server does.

use std::net::IpAddr;

use baton_abi::ADOPT_ATTEMPTS;
use baton_wire::{Message, Refusal, TcbPart};

use super::entry::{HERE, NOBODY, both, enter, from_ds, from_self, owners};
use crate::prelude::*;

const REFUSED: Counted<'_> = &[("cs_refused", 1), ("ds_refused", 1)];
const BY_ALL: Counted<'_> = &[
    ("cs_refused", 1),
    ("cs_refused_by_all", 1),
    ("ds_refused", 1),
];

#[track_caller]
fn goes_to(node: &Node, seen: &Seen, index: u16, message: &Message, packet: &Segment) {
    let sent = sent(node, seen);
    assert_eq!((sent.from, sent.to), (CS, ds(index)));
    assert_eq!(seen.packet().ethernet.destination, ds_mac(index));
    assert_eq!(seen.packet().ethernet.source, CS_MAC);
    assert_eq!(&sent.message, message);
    assert_eq!(sent.packet, packet.packet());
}

/// The client's first packet is adopted, refused and sent to another data server, all on this node.
#[test]
fn a_request_that_nobody_here_listens_for() {
    let _host = own_host();
    let node = both();
    // Which choice comes next depends on the cases before: one in three is this node's.
    node.set_choices(0, &[HERE, 1, 1]);
    let (client, get, seen) = loop {
        let client = Client::fresh();
        let get = client.get(node.cookie(&client));
        let seen = node.run(&get.frame());
        if seen.counted.contains_key("ds_refused") {
            break (client, get, seen);
        }
    };
    let counted = [&[("cs_adopt", 1)], REFUSED].concat();
    let seen = seen.expect(Redirect, &counted);
    assert_eq!(owners(&node, &client), (1, NOBODY));
    goes_to(&node, &seen, 1, &adopt_after(&client, 1), &get);
}

/// Another data server has handed the connection over, and this one cannot take it.
#[test]
fn a_connection_that_was_handed_here() {
    let _host = own_host();
    let node = both();
    let client = Client::fresh();
    let request = client.get(7);
    enter(&node, &client, &request, HERE, 1);
    node.set_choices(0, &[2; 3]);
    let frame = from_ds(1, &node, &adopt(&client), &request.packet());
    let seen = node.run(&frame).expect(Redirect, REFUSED);
    assert_eq!(owners(&node, &client), (2, NOBODY));
    goes_to(&node, &seen, 2, &adopt_after(&client, 1), &request);
}

/// The daemon gets the REFUSED and resets the client. The message's source address is the client's, because the kernel
/// drops a packet from an address of its own.
#[test]
fn nobody_takes_it() {
    let ways: [(&str, fn(&Node), u8); 3] = [
        (
            "nobody else is there",
            |node| node.set_choices(0, &[HERE; 3]),
            0,
        ),
        (
            "the other is not configured",
            |node| node.set_choices(0, &[9; 3]),
            0,
        ),
        ("after the last attempt", |_| (), ADOPT_ATTEMPTS as u8 - 1),
    ];
    for (name, prepare, attempt) in ways {
        let _host = own_host();
        let node = both();
        let client = Client::fresh();
        let request = client.get(7);
        enter(&node, &client, &request, HERE, NOBODY);
        prepare(&node);
        let frame = from_self(&node, &adopt_after(&client, attempt), &request.packet());
        let seen = node.run(&frame);
        seen.expect_of(name, Pass, BY_ALL);
        let message = sent(&node, &seen);
        assert_eq!(
            (IpAddr::V4(message.from), message.to),
            (IpAddr::V4(*client.address.ip()), CS),
            "{name}"
        );
        assert_eq!(seen.packet().ethernet.destination, CS_MAC, "{name}");
        let (flow, refusal) = (flow(&client), Refusal::NoListener);
        let Message::Refused { tcb, .. } = message.message else {
            panic!("{name}: {message:?}");
        };
        let attempt = tcb.attempt;
        let tcb = TcbPart {
            attempt,
            ..linux_tcb()
        };
        assert_eq!(message.message, Message::Refused { flow, tcb, refusal });
        assert_eq!(message.packet, request.packet(), "{name}");
        assert!(node.tcb(&client).is_none(), "{name}");
    }
}

/// A late refusal changes nothing: by then the connection has another owner, or none.
#[test]
fn only_the_owner_can_refuse() {
    let _host = own_host();
    let node = both();
    let client = Client::fresh();
    let request = client.get(7);
    let mismatch: Counted<'_> = &[("ds_refused", 1), ("lccp_mismatch", 1)];
    let frame = from_ds(1, &node, &adopt(&client), &request.packet());
    node.run(&frame).expect(Drop, mismatch);
    enter(&node, &client, &request, 1, HERE);
    node.run(&frame).expect(Drop, mismatch);
    assert_eq!(owners(&node, &client), (1, HERE));
}

/// A late refusal of an earlier request changes nothing. The connection has come back to the same data server since.
#[test]
fn only_the_last_request_can_be_refused() {
    let _host = own_host();
    let node = both();
    let client = Client::fresh();
    let earlier = client.get(7);
    let later = client.later(7, GET.len(), 10).payload(GET);
    let acknowledges = Segment {
        ack: earlier.ack.wrapping_add(10),
        ..earlier.clone()
    };
    for last in [&later, &acknowledges] {
        enter(&node, &client, last, HERE, NOBODY);
        let frame = from_self(&node, &adopt_after(&client, 0), &earlier.packet());
        let mismatch: Counted<'_> = &[("ds_refused", 1), ("lccp_mismatch", 1)];
        node.run(&frame).expect(Drop, mismatch);
        assert_eq!(owners(&node, &client), (HERE, NOBODY));
    }
}
