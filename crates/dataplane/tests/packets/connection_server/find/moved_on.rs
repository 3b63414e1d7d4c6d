//! MOVED from the owner: it has handed the connection over, and the entry follows.

use baton_abi::{NO_DATA_SERVER, TCB_ADOPTING, TCB_AT_DOOR, TCB_RESUMING, TCB_WAITING, Tcb};
use baton_wire::Message;
use libbpf_rs::{MapCore as _, MapFlags};
use zerocopy::IntoBytes as _;

use crate::{
    connection_server::http::{ANSWER, Connection, forwarded, get, routes_by_name},
    prelude::*,
};

const MOVED_ON: Counted<'_> = &[("cs_moved_on", 1)];
const MISMATCH: Counted<'_> = &[("lccp_mismatch", 1)];

fn node() -> Node {
    Node::cs()
}

/// A MOVED in which `from` says that `next` has the connection from this packet on.
fn moved_on(
    node: &Node,
    connection: &Connection,
    from: u16,
    next: u16,
    packet: &Segment,
) -> Vec<u8> {
    let message = moved(&connection.client, Some(short(ds(next))));
    node.said_by(from, &message, packet)
}

fn owner(entry: &Tcb) -> (u16, u32) {
    (entry.owner, entry.previous.into())
}

/// A connection at the first data server, which has answered one request of it.
fn answered(node: &Node) -> Connection {
    routes_by_name(node);
    let mut connection = Connection::open(node, get("/ds1/"));
    assert_eq!(owner(&connection.entry(node)), (0, NO_DATA_SERVER));
    connection.ack = connection.ack.wrapping_add(ANSWER);
    connection
}

/// A connection at the first data server that was answered once and has sent a request for the second data server.
fn asked(node: &Node) -> (Connection, Segment) {
    let mut connection = answered(node);
    let request = connection.data(get("/ds2/"));
    connection.send(node, &request);
    (connection, request)
}

/// The ports had another connection before, at the same data server. A late MOVED about that one changes nothing.
#[test]
fn what_is_said_of_an_earlier_connection_is_nothing() {
    let node = node();
    let (connection, request) = asked(&node);
    let before = connection.entry(&node);
    for (seq, ack) in [(1 << 20, 0), (0, 1 << 31), (0x4000_0000, 0x9000_0000)] {
        let mut earlier = request.clone();
        earlier.seq = earlier.seq.wrapping_add(seq);
        earlier.ack = earlier.ack.wrapping_add(ack);
        let word = moved_on(&node, &connection, 0, 1, &earlier);
        node.run(&word).expect(Drop, MISMATCH);
        assert_eq!(connection.entry(&node), before);
    }
}

/// A further request is forwarded, whatever it asks for: its owner judges it.
#[test]
fn further_requests_are_forwarded() {
    let node = node();
    let mut connection = answered(&node);
    for target in ["/ds2/", "/ds1/", "/a", "/ds2/../ds3/"] {
        let request = connection.data(get(target));
        let seen = connection
            .send(&node, &request)
            .expect(Tx, &forwarded(&request));
        assert_eq!(seen.packet().ethernet.destination, ds_mac(0));
        connection.ack = connection.ack.wrapping_add(ANSWER);
    }
}

/// A first request that does not show its pool plainly is adopted too: the data server that gets it knows its pool or
/// finds it out. User space at the connection server is not asked.
#[test]
fn a_first_request_need_not_be_clear() {
    let node = node();
    routes_by_name(&node);
    let whole = get("/ds2/");
    let texts = [&whole[..1], &whole[..9], &whole[..whole.len() - 2]];
    for text in texts {
        let connection = Connection::open(&node, text);
        assert_ne!(owner(&connection.entry(&node)).0, NO_DATA_SERVER as u16);
    }
    Connection::open(&node, get("/ds2/../ds3/"));
}

#[test]
fn the_entry_follows_its_owner() {
    let node = node();
    let (mut connection, request) = asked(&node);
    let told = moved_on(&node, &connection, 0, 1, &request);
    node.run(&told).expect(Drop, MOVED_ON);
    let entry = connection.entry(&node);
    assert_eq!(owner(&entry), (1, NO_DATA_SERVER));
    let state = TCB_AT_DOOR | TCB_ADOPTING | TCB_WAITING;
    assert_eq!(u32::from(entry.state), state);

    // The request comes again and may not have been adopted yet, so it goes as ADOPT.
    let seen = node
        .run(&request.frame())
        .expect(Tx, &[("cs_adopt_again", 1)]);
    assert_eq!(sent(&node, &seen).to, ds(1));
    // A request whose response is acknowledged has been adopted.
    connection.ack = connection.ack.wrapping_add(ANSWER);
    let ack = connection.empty();
    let seen = node.run(&ack.frame()).expect(Tx, &forwarded(&ack));
    assert_eq!(seen.packet().ethernet.destination, ds_mac(1));
    assert_eq!(u32::from(connection.entry(&node).state), TCB_AT_DOOR);
    // A repeated MOVED, or one from a data server that is no longer the owner, changes nothing.
    node.run(&told).expect(Drop, MISMATCH);
    assert_eq!(owner(&connection.entry(&node)), (1, NO_DATA_SERVER));
}

/// The request that comes again is the same attempt as the ADOPT that MOVED has told of: who has passed that one on knows
/// this one as its copy.
#[test]
fn the_request_comes_again_as_the_same_attempt() {
    let node = node();
    let (connection, request) = asked(&node);
    let mut told = moved(&connection.client, Some(short(ds(1))));
    if let Message::Moved { tcb, .. } = &mut told {
        tcb.attempt = 3;
    }
    node.run(&node.said_by(0, &told, &request))
        .expect(Drop, MOVED_ON);
    let seen = node
        .run(&request.frame())
        .expect(Tx, &[("cs_adopt_again", 1)]);
    let adopts = sent(&node, &seen).message;
    assert!(
        matches!(adopts, Message::Adopt { tcb, .. } if tcb.attempt == 3),
        "{adopts:?}"
    );
}

/// Only a MOVED from the owner that the entry names is believed, and only if it names a data server that exists.
#[test]
fn no_other_is_believed() {
    let node = node();
    let (connection, request) = asked(&node);
    let before = connection.entry(&node);
    for (from, next) in [(1, 1), (1, 2), (2, 1), (0, 9)] {
        let told = moved_on(&node, &connection, from, next, &request);
        node.run(&told).expect(Drop, MISMATCH);
        connection.is_unchanged(&node, &before);
    }
}

/// An owner that has handed the connection over before, and is given it again, may follow its old note for a packet that
/// comes ahead of the ADOPT. So the entry may know the owner by an old message when the right one comes, from a data
/// server that the entry does not name.
#[test]
fn a_later_request_of_the_same_owner_is_noted() {
    let node = node();
    let (mut connection, request) = asked(&node);
    let told = moved_on(&node, &connection, 0, 1, &request);
    node.run(&told).expect(Drop, MOVED_ON);
    connection.ack = connection.ack.wrapping_add(ANSWER);
    let later = connection.data(get("/ds2/b"));
    connection.send(&node, &later);
    assert_eq!(u32::from(connection.entry(&node).state), TCB_AT_DOOR);
    let told = moved_on(&node, &connection, 2, 1, &later);
    node.run(&told).expect(Drop, MOVED_ON);
    let entry = connection.entry(&node);
    assert_eq!(owner(&entry), (1, NO_DATA_SERVER));
    let state = TCB_AT_DOOR | TCB_ADOPTING | TCB_WAITING;
    assert_eq!(
        (u32::from(entry.state), entry.request_seq),
        (state, later.seq)
    );
    let seen = node
        .run(&later.frame())
        .expect(Tx, &[("cs_adopt_again", 1)]);
    assert_eq!(sent(&node, &seen).to, ds(1));
    // While a response is resumed, the entry's request is the one that it answers.
    let resumed = Tcb {
        state: entry.state | TCB_RESUMING as u8, // a byte
        request_seq: request.seq,
        ..entry
    };
    let key = node.tcb_key(&connection.client);
    let entries = map_named(node.plane(), "tcbs");
    (entries.update(key.as_bytes(), resumed.as_bytes(), MapFlags::ANY)).unwrap();
    node.run(&told).expect(Drop, MISMATCH);
    // What was said before that request changes nothing.
    let told = moved_on(&node, &connection, 2, 1, &request);
    node.run(&told).expect(Drop, MISMATCH);
}

/// A MOVED that comes when the client already has the next owner's response changes only the owner: nothing is
/// adopted again.
#[test]
fn late_word_is_only_about_the_owner() {
    let node = node();
    let (mut connection, request) = asked(&node);
    connection.ack = connection.ack.wrapping_add(ANSWER);
    node.run(&connection.empty().frame());
    let told = moved_on(&node, &connection, 0, 1, &request);
    node.run(&told).expect(Drop, MOVED_ON);
    let entry = connection.entry(&node);
    assert_eq!(
        (owner(&entry), u32::from(entry.state)),
        ((1, NO_DATA_SERVER), TCB_AT_DOOR)
    );
}

/// A connection server that has just taken over makes an entry from this MOVED.
#[test]
fn without_an_entry_one_is_made_at_the_next() {
    let node = node();
    let (connection, request) = asked(&node);
    node.forget(&connection.client);
    let told = moved_on(&node, &connection, 0, 1, &request);
    node.run(&told).expect(Drop, &[("cs_moved", 1)]);
    let entry = connection.entry(&node);
    assert_eq!(owner(&entry), (1, NO_DATA_SERVER));
    // The ADOPT may be lost, so the request goes as ADOPT if it comes again.
    let state = TCB_AT_DOOR | TCB_ADOPTING | TCB_WAITING;
    assert_eq!(u32::from(entry.state), state);
    node.run(&request.frame())
        .expect(Tx, &[("cs_adopt_again", 1)]);
}

/// The owner tells that a connection is at rest. It is known there, so its next request is not adopted.
#[test]
fn without_an_entry_one_is_made_of_a_connection_at_rest() {
    let node = node();
    let connection = answered(&node);
    node.forget(&connection.client);
    let told = moved_on(&node, &connection, 0, 0, &connection.empty());
    node.run(&told).expect(Drop, &[("cs_moved", 1)]);
    let entry = connection.entry(&node);
    assert_eq!(owner(&entry), (0, NO_DATA_SERVER));
    assert_eq!(u32::from(entry.state), TCB_AT_DOOR);
}
