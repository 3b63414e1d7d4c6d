//! KEEP, NONE, and REFUSED after a handover: the connection is not where it was believed to be.

use baton_abi::{DataServer, NO_DATA_SERVER, TCB_ADOPTING};
use baton_wire::{Keep, Message, Refusal};

use super::{
    handover::MOVED,
    http::{ANSWER, Connection, forwarded, get, routes_by_name},
};
use crate::{
    cluster::{CS, CS_MAC, ds, ds_mac, first_pool_of_one, key},
    lccp::{adopt, flow, handover, linux_tcb, sent, to_cs},
    node::{Counted, Drop, Node, Tx},
    segment::{Client, Segment, padded},
};

const KEPT: Counted<'_> = &[("cs_kept", 1)];
const NONE: Counted<'_> = &[("cs_none", 1)];
const ASKED: Counted<'_> = &[("cs_claim", 1), ("cs_none", 1)];
const MISMATCH: Counted<'_> = &[("lccp_mismatch", 1)];

fn prepared() -> Node {
    let node = Node::cs();
    routes_by_name(&node);
    node
}

/// It has delivered the request itself.
#[test]
fn the_owner_keeps_it() {
    let node = prepared();
    for why in [
        Keep::State,
        Keep::Unsent,
        Keep::Unread,
        Keep::Sequence,
        Keep::NoWay,
        Keep::Busy,
        Keep::Other,
    ] {
        let (mut connection, request) = Connection::handed_over(&node);
        node.run(&keep(&node, 0, &request, why)).expect(Drop, KEPT);
        let entry = connection.entry(&node);
        assert_eq!(entry.owner, 0, "{why:?}");
        assert_eq!(u32::from(entry.state) & TCB_ADOPTING, 0, "{why:?}");

        // From here on everything is as if nobody had asked, the request sent again included.
        for packet in [request, connection.empty()] {
            let seen = node.run(&packet.frame()).expect(Tx, &forwarded(&packet));
            assert_eq!(seen.packet().ethernet.destination, ds_mac(0));
        }
        // The next request for another is another try.
        connection.ack += ANSWER;
        let request = connection.data(get("/ds2/"));
        let seen = connection.send(&node, &request).expect(Tx, MOVED);
        let message = sent(&node, &seen);
        assert_eq!(message.to, ds(0));
        assert_eq!(message.message, handover(&connection.client, 1));
    }
}

#[test]
fn only_who_was_asked_can_keep() {
    let node = prepared();
    let (connection, request) = Connection::handed_over(&node);
    let before = connection.entry(&node);
    for from in [1, 2, 9] {
        let frame = keep(&node, from, &request, Keep::Unsent);
        node.run(&frame).expect(Drop, MISMATCH);
    }
    connection.is_unchanged(&node, &before);
    // Twice is once.
    let frame = keep(&node, 0, &request, Keep::Unsent);
    node.run(&frame).expect(Drop, KEPT);
    node.run(&frame).expect(Drop, MISMATCH);
    // Nobody was asked.
    let other = Connection::answered(&node);
    let frame = keep(&node, 0, &other.data("x"), Keep::Unsent);
    node.run(&frame).expect(Drop, MISMATCH);
    assert_eq!(other.entry(&node).owner, 0);
}

/// Late, when the next has the connection after all: the next packet's NONE takes it back.
#[test]
fn a_late_keep_is_undone() {
    let node = prepared();
    let (mut connection, request) = Connection::handed_over(&node);
    connection.ack += ANSWER;
    let ack = connection.empty();
    node.run(&ack.frame()).expect(Tx, &forwarded(&ack));
    node.run(&keep(&node, 0, &request, Keep::Sequence))
        .expect(Drop, KEPT);
    let seen = node.run(&ack.frame()).expect(Tx, &forwarded(&ack));
    assert_eq!(seen.packet().ethernet.destination, ds_mac(0));
    let seen = node.run(&none(&node, 0, &ack, 0)).expect(Tx, NONE);
    let message = sent(&node, &seen);
    assert_eq!(message.to, ds(1));
    assert_eq!(message.message, forward_again(&connection.client));
    assert_eq!(connection.entry(&node).owner, 1);
}

/// The new owner does not have it, so the one before still does: it gets the packet.
#[test]
fn the_next_has_it_not() {
    let node = prepared();
    let (connection, _) = Connection::handed_over(&node);
    let packet = connection.empty();
    let frame = none(&node, 1, &packet, 0);
    let seen = node.run(&frame).expect(Tx, NONE);
    let message = sent(&node, &seen);
    assert_eq!((message.from, message.to), (CS, ds(0)));
    assert_eq!(seen.packet().ethernet.source, CS_MAC);
    assert_eq!(seen.packet().ethernet.destination, ds_mac(0));
    assert_eq!(message.message, forward_again(&connection.client));
    assert_eq!(message.packet, packet.packet());
    assert_eq!(seen.frame.len(), frame.len());
    let entry = connection.entry(&node);
    assert_eq!((entry.owner, entry.previous), (0, 1));

    // Should that one not have it either, the packet ends here, and the client's next tries again.
    let again = none(&node, 0, &packet, 1);
    node.run(&again).expect(Drop, NONE);
    let entry = connection.entry(&node);
    assert_eq!((entry.owner, entry.previous), (1, 0));
}

/// Duplicated on the wire: the second finds another owner.
#[test]
fn a_duplicate_none_counts_once() {
    let node = prepared();
    let (connection, _) = Connection::handed_over(&node);
    let frame = none(&node, 1, &connection.empty(), 0);
    node.run(&frame).expect(Tx, NONE);
    node.run(&frame).expect(Drop, MISMATCH);
    assert_eq!(connection.entry(&node).owner, 0);
}

/// Its packet may be of any kind and size that fits around it.
#[test]
fn every_packet_that_comes_back_goes_on() {
    let node = prepared();
    let kinds: [fn(Segment) -> Segment; 4] = [
        |packet| packet.payload(vec![b'x'; 1348]),
        |packet| packet.flags("FA"),
        |packet| packet.options([]),
        |packet| packet.ip_options([1; 40]),
    ];
    for change in kinds {
        let (connection, _) = Connection::handed_over(&node);
        let packet = change(connection.data([]));
        let frame = padded(none(&node, 1, &packet, 0), 3);
        let seen = node.run(&frame).expect(Tx, NONE);
        assert_eq!(seen.packet().padding, 3);
        assert_eq!(sent(&node, &seen).packet, packet.packet());
    }
}

/// Its ADOPT may still be on its way: once more, and then it is its client's to send again.
#[test]
fn a_new_connection_that_nobody_had_before() {
    let node = prepared();
    let connection = Connection::open(&node, get("/ds1/"));
    let before = connection.entry(&node);
    for packet in [connection.data("more"), connection.empty()] {
        let frame = none_of(&node, 0, &packet, 0, true);
        let seen = node.run(&frame).expect(Tx, &[("cs_ahead", 1)]);
        let again = sent(&node, &seen);
        assert_eq!(again.message, forward_again(&connection.client));
        assert_eq!((again.to, again.packet), (ds(0), packet.packet()));
        // What was only asked about nobody has judged.
        node.run(&none(&node, 0, &packet, 0)).expect(Drop, NONE);
    }
    let stranger = none_of(&node, 1, &connection.empty(), 0, true);
    node.run(&stranger).expect(Drop, MISMATCH);
    connection.is_unchanged(&node, &before);
}

/// Its owner had it, but another connection server has moved it on: all are asked.
#[test]
fn a_connection_that_has_gone_elsewhere() {
    let node = prepared();
    let connection = acknowledged(&node);
    let packet = connection.empty();
    let frame = none(&node, 0, &packet, 0);
    let seen = node.run(&frame).expect(Tx, ASKED);
    let message = sent(&node, &seen);
    let expected = Message::Claim {
        flow: flow(&connection.client),
        asker: crate::lccp::short(CS),
        attempt: 0,
    };
    assert_eq!(message.message, expected);
    assert_eq!(message.packet, packet.packet());
    assert!(node.tcb(&connection.client).is_none());
}

/// Neither has it, and somebody has answered it meanwhile: they are not asked in turns for ever.
#[test]
fn a_connection_that_neither_of_two_has() {
    let node = prepared();
    let (mut connection, _) = Connection::handed_over(&node);
    connection.ack += ANSWER;
    let ack = connection.empty();
    node.run(&ack.frame()).expect(Tx, &forwarded(&ack));
    node.run(&none(&node, 1, &ack, 0)).expect(Tx, NONE);
    let entry = connection.entry(&node);
    assert_eq!(
        (entry.owner, u32::from(entry.previous)),
        (0, NO_DATA_SERVER)
    );
    node.run(&none(&node, 0, &ack, 0)).expect(Tx, ASKED);
    assert!(node.tcb(&connection.client).is_none());
}

/// What is left of one that its client has ended may find nobody.
#[test]
fn a_connection_that_has_ended() {
    for flags in ["FA", "RA"] {
        let node = prepared();
        let connection = acknowledged(&node);
        let end = connection.empty().flags(flags);
        node.run(&end.frame());
        let before = connection.entry(&node);
        node.run(&none(&node, 0, &end, 0)).expect(Drop, NONE);
        connection.is_unchanged(&node, &before);
    }
}

fn acknowledged(node: &Node) -> Connection {
    let connection = Connection::answered(node);
    let ack = connection.empty();
    node.run(&ack.frame()).expect(Tx, &forwarded(&ack));
    connection
}

#[test]
fn who_had_it_before_is_gone() {
    let node = prepared();
    let (connection, _) = Connection::handed_over(&node);
    let before = connection.entry(&node);
    node.plane()
        .set_data_server(0, &DataServer::default())
        .unwrap();
    let frame = none(&node, 1, &connection.empty(), 0);
    node.run(&frame).expect(Drop, NONE);
    connection.is_unchanged(&node, &before);
}

#[test]
fn only_the_owner_can_have_it_not() {
    let node = prepared();
    let (connection, _) = Connection::handed_over(&node);
    let before = connection.entry(&node);
    for from in [0, 2, 9] {
        let frame = none(&node, from, &connection.empty(), 0);
        node.run(&frame).expect(Drop, MISMATCH);
    }
    connection.is_unchanged(&node, &before);
}

/// The next has no listener: another of the pool is asked, in the same name.
#[test]
fn refused_after_a_handover() {
    let node = prepared();
    let pool = first_pool_of_one() + 1;
    let mut wider = node.plane().pool(pool).unwrap();
    node.set_choices(pool, &[1, 2]);
    wider.choices = 2;
    node.plane().set_pool(pool, &wider).unwrap();

    let mut connection = Connection::answered(&node);
    let request = connection.data(get("/ds2/"));
    connection.send(&node, &request).expect(Tx, MOVED);
    let next = connection.entry(&node).owner;
    let other = 3 - next;
    let frame = refused(&node, next, &request, 0);
    let seen = node.run(&frame).expect(Tx, &[("cs_refused", 1)]);
    let message = sent(&node, &seen);
    assert_eq!((message.from, message.to), (CS, ds(other)));
    assert_eq!(message.packet, request.packet());
    let Message::Adopt { asker, tcb, .. } = message.message else {
        panic!("{message:?}");
    };
    assert_eq!((asker, tcb.attempt), (Some(crate::lccp::short(CS)), 1));

    // Who had it before has it no more: what is sent again is ADOPT.
    let entry = connection.entry(&node);
    assert_eq!(
        (entry.owner, u32::from(entry.previous)),
        (other, NO_DATA_SERVER)
    );
    let seen = node.run(&request.frame());
    let message = sent(&node, &seen.expect(Tx, &[("cs_adopt_again", 1)]));
    assert_eq!(message.to, ds(other));
    assert_eq!(message.message, adopt(&connection.client));
}

/// Neither who had it before nor a stranger can refuse for the next.
#[test]
fn only_the_next_can_refuse() {
    let node = prepared();
    let (connection, request) = Connection::handed_over(&node);
    let before = connection.entry(&node);
    for from in [0, 2] {
        let frame = refused(&node, from, &request, 0);
        node.run(&frame).expect(Drop, MISMATCH);
    }
    connection.is_unchanged(&node, &before);
}

#[test]
fn of_an_unknown_flow() {
    let node = prepared();
    let stranger = Client::of(crate::cluster::HTTP).get(7);
    node.run(&keep(&node, 0, &stranger, Keep::Unsent))
        .expect(Drop, MISMATCH);
    node.run(&none(&node, 0, &stranger, 0))
        .expect(Drop, MISMATCH);
}

fn keep(node: &Node, from: u16, packet: &Segment, keep: Keep) -> Vec<u8> {
    let message = Message::Keep {
        flow: flow(&of(packet)),
        tcb: linux_tcb(),
        keep,
    };
    message_from(node, from, &message, packet)
}

pub fn none(node: &Node, from: u16, packet: &Segment, attempt: u8) -> Vec<u8> {
    none_of(node, from, packet, attempt, false)
}

fn none_of(node: &Node, from: u16, packet: &Segment, attempt: u8, is_plain: bool) -> Vec<u8> {
    let message = Message::None {
        flow: flow(&of(packet)),
        attempt,
        is_plain,
    };
    message_from(node, from, &message, packet)
}

fn refused(node: &Node, from: u16, packet: &Segment, attempt: u8) -> Vec<u8> {
    let mut tcb = linux_tcb();
    tcb.attempt = attempt;
    let message = Message::Refused {
        flow: flow(&of(packet)),
        tcb,
        refusal: Refusal::NoListener,
    };
    message_from(node, from, &message, packet)
}

fn message_from(node: &Node, from: u16, message: &Message, packet: &Segment) -> Vec<u8> {
    to_cs(from, message, node.now(), &key().lccp(), &packet.packet())
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

fn of(packet: &Segment) -> Client {
    Client {
        address: packet.from,
        service: packet.to,
        isn: 0,
    }
}
