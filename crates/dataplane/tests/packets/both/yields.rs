//! YIELD of a response of a both-role node. Another node's connection server asks, and the program is loaded with
//! everything that it does for its own connection server.

use std::{
    io::{ErrorKind, Read as _},
    thread,
    time::Duration,
};

use baton_abi::{DataServer, LCCP_ADOPT, LCCP_FLAG_RESUME};
use baton_wire::{Message, YieldAnswer, encode};

use crate::prelude::*;

/// The index of the other node. Its address is on this host, because a both-role node has the connection server's.
const ASKER: u16 = 0;
/// The time after which whatever was on its way has arrived.
const SETTLED: Duration = Duration::from_millis(20);

fn answered() -> Live {
    let live = Live::answering_at(Node::attached_both(ARRIVES_AT));
    let way = DataServer {
        ifindex: Wire::interface(),
        ..peer(ds_mac(ASKER))
    };
    live.node.data_server().set_peer(ds(ASKER), &way).unwrap();
    live
}

fn say(live: &Live, next: Option<u16>) {
    let flow = flow(&live.client);
    let next = next.map(|next| short(ds(next)));
    let ack = live.ack().options([1; 12]);
    let message = Message::Yield { flow, next };
    let pair = to_cs_from(ASKER);
    let bytes = encode(
        &message,
        &ack.packet(),
        live.node.now(),
        &key().lccp(),
        pair,
    );
    send_lccp_from(ds(ASKER), CS, &bytes);
}

#[track_caller]
fn answers(live: &Live, answer: YieldAnswer) {
    let packet = live.wire.next();
    assert_eq!(packet.ethernet.destination, ds_mac(ASKER), "{packet:?}");
    let message = opened(&live.node, &packet);
    assert_eq!((message.from, message.to), (CS, ds(ASKER)));
    let flow = flow(&live.client);
    assert_eq!(message.message, Message::Yielded { flow, answer });
}

#[test]
fn a_response_goes_when_another_node_asks() {
    let _host = own_host();
    let live = answered();
    say(&live, Some(1));
    live.expect(&[("ds_yielding", 1), ("ds_yield_closed", 1)]);
    thread::sleep(SETTLED);
    say(&live, Some(1));
    live.expect(&[("ds_yielded", 1)]);
    let packet = live.wire.next();
    assert_eq!(packet.ethernet.destination, ds_mac(1), "{packet:?}");
    assert_eq!((packet.from(), packet.to()), (CS, ds(1)));
    let said = [LCCP_ADOPT, LCCP_FLAG_RESUME].map(|word| word as u8);
    assert_eq!(packet.body[2..4], said);
    assert_eq!(packet.body[80..], live.ack().packet());
    let error = (&live.stream).read(&mut [0; 16]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    say(&live, Some(1));
    live.expect(&[("ds_yield_gone", 1)]);
    answers(&live, YieldAnswer::Gone);
}

#[test]
fn told_to_stay_it_goes_on() {
    let _host = own_host();
    let mut live = answered();
    say(&live, Some(1));
    live.expect(&[("ds_yielding", 1), ("ds_yield_closed", 1)]);
    say(&live, None);
    live.expect(&[("ds_yield_stopped", 1)]);
    answers(&live, YieldAnswer::Kept);
    live.write();
}
