//! NONE: a packet of a connection that this node's data server has not, for whatever reason.

use baton_wire::Message;

use super::entry::{HERE, NOBODY, both, enter, from_self, owners};
use crate::{
    cluster::{CS, ds, ds_mac},
    host::on_own_host,
    lccp::{flow, forward, sent},
    node::{Counted, Drop, Redirect},
    segment::{Client, GET, Segment},
};

const NONE: Counted<'_> = &[("cs_none", 1), ("ds_none", 1)];

/// A forwarded packet's counters before it comes back.
fn forwarded(packet: &Segment) -> Vec<(&'static str, u64)> {
    let bytes = packet.packet().len() as u64;
    vec![("cs_forward", 1), ("cs_forward_bytes", bytes)]
}

fn forward_again(client: &Client) -> Message {
    Message::Forward {
        flow: flow(client),
        next: None,
        attempt: 1,
        end: 0,
        is_behind: false,
    }
}

/// The one before has it after all: it gets the packet, and those that follow.
#[test]
fn the_one_before_gets_it() {
    on_own_host(|| {
        let node = both();
        for (number, payload) in [&b""[..], b"x", &[b'x'; 1300]].into_iter().enumerate() {
            let client = Client::fresh();
            let request = client.get(7);
            enter(&node, &client, &request, HERE, 1);
            // It acknowledges something, so the request is with somebody.
            let ack = client.later(7, GET.len(), 100).payload(payload);
            let counted = [forwarded(&ack), NONE.to_vec()].concat();
            let pinned = [&[("cs_pinned", 1), ("cs_request", 0)][..], &counted].concat();
            let seen = node.run(&ack.frame());
            let pins = number > 0;
            let counted: Vec<_> = (if pins { pinned } else { counted })
                .into_iter()
                .filter(|(_, by)| *by > 0)
                .collect();
            let seen = seen.expect(Redirect, &counted);
            let message = sent(&node, &seen);
            assert_eq!((message.from, message.to), (CS, ds(1)));
            assert_eq!(seen.packet().ethernet.destination, ds_mac(1));
            assert_eq!(message.message, forward_again(&client));
            assert_eq!(message.packet, ack.packet());
            // Somebody has answered: this node is not asked for it again.
            assert_eq!(owners(&node, &client), (1, NOBODY));
        }
    });
}

#[test]
fn there_was_nobody_before() {
    on_own_host(|| {
        let node = both();
        let client = Client::fresh();
        for previous in [NOBODY, HERE, 9] {
            enter(&node, &client, &client.get(7), HERE, previous);
            let ack = client.later(7, GET.len(), 100);
            let counted = [forwarded(&ack), NONE.to_vec()].concat();
            node.run(&ack.frame()).expect(Drop, &counted);
            assert_eq!(owners(&node, &client), (HERE, previous));
        }
    });
}

/// A RST needs no owner.
#[test]
fn a_reset_ends_here() {
    on_own_host(|| {
        let node = both();
        let client = Client::fresh();
        enter(&node, &client, &client.get(7), HERE, 1);
        let reset = client.later(7, GET.len(), 100).flags("RA");
        let counted = [forwarded(&reset), vec![("cs_rst", 1), ("ds_no_socket", 1)]].concat();
        node.run(&reset.frame()).expect(Drop, &counted);
        assert_eq!(owners(&node, &client), (HERE, 1));
    });
}

#[test]
fn the_same_inside_a_message() {
    on_own_host(|| {
        let node = both();
        let client = Client::fresh();
        let ack = client.later(7, GET.len(), 100);
        let frame = from_self(&node, &forward(&client), &ack.packet());
        node.run(&frame).expect(Drop, &[("ds_no_socket", 1)]);
        enter(&node, &client, &client.get(7), 1, HERE);
        node.run(&frame).expect(Drop, &[("ds_no_socket", 1)]);
        assert_eq!(owners(&node, &client), (1, HERE));

        enter(&node, &client, &client.get(7), HERE, 1);
        let seen = node.run(&frame).expect(Redirect, NONE);
        let message = sent(&node, &seen);
        assert_eq!(message.to, ds(1));
        assert_eq!(message.message, forward_again(&client));
        assert_eq!(message.packet, ack.packet());
        assert_eq!(owners(&node, &client), (1, HERE));

        // It comes back from there a second time: the client's next packet tries again.
        enter(&node, &client, &client.get(7), HERE, 1);
        let frame = from_self(&node, &forward_again(&client), &ack.packet());
        node.run(&frame).expect(Drop, &[("ds_no_socket", 1)]);
    });
}
