//! NONE: the owner that the entry names does not have the connection.

use baton_abi::Tcb;
use baton_wire::Message;

use crate::{
    connection_server::http::{Connection, get, routes_by_name},
    prelude::*,
};

fn node() -> Node {
    let node = Node::fresh_cs();
    routes_by_name(&node);
    node
}

/// A NONE in which `from` says that it does not have the connection of this packet, which came to it by itself
/// (`is_plain`) or inside a message.
fn none(
    node: &Node,
    connection: &Connection,
    from: u16,
    is_plain: bool,
    packet: &Segment,
) -> Vec<u8> {
    let message = crate::lccp::none(&connection.client, 0, is_plain);
    node.said_by(from, &message, packet)
}

/// More data of the first request overtook the ADOPT. It goes to the same data server once more, and the entry stays.
#[test]
fn what_came_ahead_goes_there_once_more() {
    for is_plain in [true, false] {
        let node = node();
        let connection = Connection::open(&node, get("/ds1/"));
        let before = connection.entry(&node);
        let more = connection.data("more");
        let answer = none(&node, &connection, 0, is_plain, &more);
        let seen = node.run(&answer).expect(Tx, &[("cs_ahead", 1)]);
        let again = sent(&node, &seen);
        let Message::Forward { attempt, .. } = again.message else {
            panic!("{again:?}");
        };
        assert_eq!((again.to, attempt), (ds(0), 1));
        assert_eq!(again.packet, more.packet());
        let nones = connection.entry(&node).nones;
        connection.is_unchanged(&node, &Tcb { nones, ..before });
    }
}

/// A connection that its owner is to adopt, and does not have for many seconds, is lost. The other data servers are
/// asked, and the client hears of it.
#[test]
fn who_is_awaited_for_too_long_is_lost() {
    let node = node();
    let connection = Connection::open(&node, get("/ds1/"));
    let answer = none(&node, &connection, 0, false, &connection.data("more"));
    node.run(&answer).expect(Tx, &[("cs_ahead", 1)]);
    let mut entry = connection.entry(&node);
    let (last, ticks) = (entry.nones & 0xf0, entry.nones & 0xf);
    assert_eq!(ticks, 1);
    // The owner has said so in four more ticks, the last of which is two ticks ago.
    entry.nones = last.wrapping_sub(0x20) | 5;
    let key = node.tcb_key(&connection.client);
    node.connection_server().set_tcb(&key, &entry).unwrap();
    // What need not come again does not count.
    let ack = none(&node, &connection, 0, true, &connection.empty());
    let earlier = connection.data("more");
    let earlier = none(
        &node,
        &connection,
        0,
        true,
        &earlier.clone().seq(earlier.seq.wrapping_sub(1000)),
    );
    for other in [ack, earlier] {
        node.run(&other).expect(Tx, &[("cs_ahead", 1)]);
    }
    node.run(&answer)
        .expect(Tx, &[("cs_none", 1), ("cs_claim", 1)]);
    assert!(node.tcb(&connection.client).is_none());
}

/// The connection has moved on: the other data servers are asked, and the entry is removed.
#[test]
fn of_what_has_gone_on_the_others_are_asked() {
    let node = node();
    let mut connection = Connection::answered(&node);
    let ack = connection.empty();
    node.run(&ack.frame());
    let request = connection.data(get("/ds1/"));
    connection.send(&node, &request);
    let answer = none(&node, &connection, 0, true, &request);
    let seen = node
        .run(&answer)
        .expect(Tx, &[("cs_none", 1), ("cs_claim", 1)]);
    let asks = sent(&node, &seen);
    assert!(matches!(asks.message, Message::Claim { .. }), "{asks:?}");
    assert_eq!(asks.packet, request.packet());
    assert!(node.tcb(&connection.client).is_none());
}

/// A NONE changes nothing if the client has ended the connection, or if it is not the owner that says so.
#[test]
fn else_nothing_changes() {
    let node = node();
    let connection = Connection::answered(&node);
    let end = connection.empty().flags("FA");
    let before = connection.entry(&node);
    let answer = none(&node, &connection, 1, true, &end);
    node.run(&answer).expect(Drop, &[("lccp_mismatch", 1)]);
    connection.is_unchanged(&node, &before);
    node.run(&end.frame());
    let before = connection.entry(&node);
    let answer = none(&node, &connection, 0, true, &end);
    node.run(&answer).expect(Drop, &[("cs_none", 1)]);
    connection.is_unchanged(&node, &before);
}
