//! First data whose SYN-ACK is older than the time at which this connection server came in front. The connection
//! server that was in front before may have passed the request on, and a data server may have done it.

use baton_wire::Message;

use crate::{
    connection_server::{
        find::claim_budget::{timestamp, with_echo},
        http::{Connection, get, routes_by_name},
    },
    prelude::*,
};

const ASKS: Counted<'_> = &[("cs_claim", 1)];
const BEGINS: Counted<'_> = &[("cs_adopt", 1)];
const POST: &str = "POST /ds1/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx";

/// Sets the time for which this node has been in front, in milliseconds.
fn in_front_for(node: &Node, milliseconds: u32) {
    let now = (node.now().as_nanos() / 1_000_000) as u32;
    node.change(|settings| settings.since_ms = now.wrapping_sub(milliseconds));
}

fn node() -> Node {
    let node = Node::fresh_cs();
    routes_by_name(&node);
    node
}

/// The first data of a client with timestamps. It echoes the timestamp of a SYN-ACK that is `ago` milliseconds old.
fn first(node: &Node, text: &str, ago: u32) -> (Client, Segment) {
    let client = Client::of(HTTP);
    let cookie = node.cookie(&client);
    let echo = timestamp(node, &client).wrapping_sub(ago);
    let options = with_echo(&client, echo).options;
    let first = client.get(cookie).payload(text).options(options);
    (client, first)
}

fn nobody(node: &Node, client: &Client, packet: &Segment) -> Vec<u8> {
    let message = none(client, 3, false);
    node.said_by(2, &message, packet)
}

#[test]
fn it_begins_if_nobody_has_it() {
    let node = node();
    in_front_for(&node, 3000);
    let (client, first) = first(&node, POST, 5000);
    let seen = node.run(&first.frame()).expect(Tx, ASKS);
    let asks = sent(&node, &seen);
    assert_eq!(asks.packet, first.packet());
    let Message::Claim { is_cut, .. } = asks.message else {
        panic!("{asks:?}");
    };
    assert!(!is_cut);
    assert!(node.tcb(&client).is_none());
    // A retransmission waits for the answer to the CLAIM.
    node.run(&first.frame()).expect(Drop, &[("cs_stray", 1)]);
    let answer = nobody(&node, &client, &first);
    let seen = node
        .run(&answer)
        .expect(Tx, &[BEGINS, &[("cs_unclaimed", 1)]].concat());
    let adopts = sent(&node, &seen);
    assert_eq!((adopts.to, adopts.packet), (ds(0), first.packet()));
    assert_eq!(node.tcb(&client).unwrap().owner, 0);
}

/// A data server has the connection, and may have done the request: the connection stays there.
#[test]
fn it_stays_with_whoever_has_it() {
    let node = node();
    in_front_for(&node, 3000);
    let (client, first) = first(&node, POST, 5000);
    node.run(&first.frame()).expect(Tx, ASKS);
    let message = moved(&client, None);
    let answer = node.said_by(1, &message, &first);
    node.run(&answer);
    assert_eq!(node.tcb(&client).unwrap().owner, 1);
}

#[test]
fn others_begin_at_once() {
    for (name, since, ago) in [
        ("its SYN-ACK is from here", 3000, 2000),
        (
            "this node has been in front for longer than any cookie lasts",
            600_000,
            700_000,
        ),
    ] {
        let node = node();
        in_front_for(&node, since);
        let (_, first) = first(&node, POST, ago);
        node.run(&first.frame()).expect_of(name, Tx, BEGINS);
    }
    let node = node();
    Connection::open(&node, POST);
}

/// Without timestamps a SYN-ACK's age is unknown. For a while after this node came in front, the data servers are
/// asked about requests that must not be done twice.
#[test]
fn who_has_no_timestamps_is_asked_about_for_a_while() {
    for (text, since, counted) in [
        (POST, 3000, ASKS),
        (POST, 20_000, BEGINS),
        (get("/ds1/").as_str(), 3000, BEGINS),
    ] {
        let node = node();
        in_front_for(&node, since);
        let client = Client::of(HTTP);
        let first = client.get(node.cookie(&client)).payload(text).options([]);
        node.run(&first.frame())
            .check(Tx, counted)
            .unwrap_or_else(|error| panic!("{text:?} after {since} ms: {error}"));
    }
}

/// If there is no data server to ask, none has the connection, so it begins here.
#[test]
fn with_nobody_to_ask_it_begins() {
    let node = node();
    in_front_for(&node, 3000);
    let mut pool = node.routing().pool(HTTP_SERVICE).unwrap();
    pool.choices = 0;
    node.routing().set_pool(HTTP_SERVICE, &pool).unwrap();
    let (_, first) = first(&node, POST, 5000);
    node.run(&first.frame()).expect(Tx, BEGINS);
}
