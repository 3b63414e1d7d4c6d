//! MOVED of the owner: it has handed the connection on, and the entry follows.

use baton_abi::{NO_DATA_SERVER, TCB_ADOPTING, TCB_AT_DOOR, TCB_WAITING, Tcb};
use baton_wire::Message;

use crate::connection_server::http::{ANSWER, Connection, forwarded, get, routes_by_name};
use crate::{
    cluster::{ds, ds_mac, key},
    lccp::{flow, linux_tcb, sent, short, to_cs},
    node::{Counted, Drop, Node, Tx},
    segment::Segment,
};

const MOVED_ON: Counted<'_> = &[("cs_moved_on", 1)];
const MISMATCH: Counted<'_> = &[("lccp_mismatch", 1)];

fn node() -> Node {
    Node::cs()
}

/// `from` says that `next` has the connection from this packet on.
fn moved_on(
    node: &Node,
    connection: &Connection,
    from: u16,
    next: u16,
    packet: &Segment,
) -> Vec<u8> {
    let message = Message::Moved {
        flow: flow(&connection.client),
        tcb: linux_tcb(),
        next: Some(short(ds(next))),
        is_cut: false,
    };
    to_cs(from, &message, node.now(), &key().lccp(), &packet.packet())
}

fn owner(entry: &Tcb) -> (u16, u32) {
    (entry.owner, entry.previous.into())
}

/// A connection at the first data server, which has answered one request.
fn answered(node: &Node) -> Connection {
    routes_by_name(node);
    let mut connection = Connection::open(node, get("/ds1/"));
    assert_eq!(owner(&connection.entry(node)), (0, NO_DATA_SERVER));
    connection.ack += ANSWER;
    connection
}

/// The same, which has asked for what is the second one's.
fn asked(node: &Node) -> (Connection, Segment) {
    let mut connection = answered(node);
    let request = connection.data(get("/ds2/"));
    connection.send(node, &request);
    (connection, request)
}

/// The ports had another connection before, at the same data server, whose word comes late.
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

/// Whatever a further request asks for is its owner's to judge.
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
        connection.ack += ANSWER;
    }
}

/// And of a first one that says not plainly whose it is, whoever gets it knows or finds out: user space here does not.
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

    // The request that comes again may not have been adopted yet.
    let seen = node
        .run(&request.frame())
        .expect(Tx, &[("cs_adopt_again", 1)]);
    assert_eq!(sent(&node, &seen).to, ds(1));
    // What is acknowledged was.
    connection.ack += ANSWER;
    let ack = connection.empty();
    let seen = node.run(&ack.frame()).expect(Tx, &forwarded(&ack));
    assert_eq!(seen.packet().ethernet.destination, ds_mac(1));
    assert_eq!(u32::from(connection.entry(&node).state), TCB_AT_DOOR);
    // Told once more, or by one that is not the owner any more.
    node.run(&told).expect(Drop, MISMATCH);
    assert_eq!(owner(&connection.entry(&node)), (1, NO_DATA_SERVER));
}

/// Only the owner that the entry names is believed, and only of data servers that there are.
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

/// Word that comes when the client has the next one's answer already: nothing is adopted again.
#[test]
fn late_word_is_only_about_the_owner() {
    let node = node();
    let (mut connection, request) = asked(&node);
    connection.ack += ANSWER;
    node.run(&connection.empty().frame());
    let told = moved_on(&node, &connection, 0, 1, &request);
    node.run(&told).expect(Drop, MOVED_ON);
    let entry = connection.entry(&node);
    assert_eq!(
        (owner(&entry), u32::from(entry.state)),
        ((1, NO_DATA_SERVER), TCB_AT_DOOR)
    );
}

/// A connection server that has just taken over makes an entry of it.
#[test]
fn without_an_entry_one_is_made_at_the_next() {
    let node = node();
    let (connection, request) = asked(&node);
    node.forget(&connection.client);
    let told = moved_on(&node, &connection, 0, 1, &request);
    node.run(&told).expect(Drop, &[("cs_moved", 1)]);
    assert_eq!(owner(&connection.entry(&node)), (1, NO_DATA_SERVER));
}
