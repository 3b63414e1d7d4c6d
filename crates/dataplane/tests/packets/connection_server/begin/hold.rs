//! Requests wait while another connection server is about to take over.

use std::{os::fd::AsFd as _, time::Duration};

use baton_abi::{DATA_SERVER_PRESENT, DataServer, HELD_FRAME_BYTES, HELD_RING_BYTES};
use baton_dataplane::{Hold, Resumed, sys};

use crate::{
    connection_server::{
        frames::switched::switched_by,
        http::{Connection, forwarded, forwarded_and, get, routes_by_name},
    },
    prelude::*,
};

const HELD: Counted<'_> = &[("cs_held", 1)];
const PASSED_ON: Counted<'_> = &[("cs_passed_on", 1)];
const LONG: Duration = Duration::from_secs(3600);

const OTHER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 252];

/// How frames reach the connection server that takes over.
pub fn other() -> DataServer {
    DataServer {
        mac: OTHER_MAC,
        source_mac: CS_MAC,
        ifindex: ARRIVES_AT,
        flags: DATA_SERVER_PRESENT as u8,
        ..DataServer::default()
    }
}

fn holding(node: &Node) -> Hold {
    let hold = node.connection_server().hold().unwrap();
    hold.begin(LONG).unwrap();
    hold
}

/// A client with a valid cookie, and its first packet.
fn first(node: &Node) -> (Client, Segment) {
    let client = Client::of(HTTP);
    let segment = client.get(node.cookie(&client)).payload(get("/ds1/"));
    (client, segment)
}

/// The frame in which the connection server that takes over gets the request.
fn passed_on(request: &Segment) -> Vec<u8> {
    switched_by(CS_MAC, OTHER_MAC, &request.frame())
}

pub fn leaves(request: &Segment) -> Resumed {
    Resumed::Leaves(passed_on(request))
}

/// A node, and a connection on it whose first request has been answered.
fn answered() -> (Node, Connection) {
    let node = Node::fresh_cs();
    routes_by_name(&node);
    let connection = Connection::answered(&node);
    (node, connection)
}

/// A request that waits changes nothing here before it goes on.
#[test]
fn first_requests_wait_and_go_on_to_the_other_one() {
    let (node, _) = answered();
    let hold = holding(&node);
    let (client, first) = first(&node);
    node.run(&first.frame()).expect(Drop, HELD);
    assert_eq!(node.tcb(&client), None);

    let went = hold.pass_on(&other(), LONG).unwrap();
    assert_eq!(went, [leaves(&first)]);
    assert!(hold.let_go().unwrap().is_empty());
    assert_eq!(node.tcb(&client), None);
}

/// If no other connection server takes over, the waiting requests go on here. No migration is left that they could
/// disturb.
#[test]
fn what_waits_goes_on_here_if_there_is_nobody_else() {
    let (node, _) = answered();
    let hold = holding(&node);
    let (client, first) = first(&node);
    node.run(&first.frame()).expect(Drop, HELD);

    let went = hold.end().unwrap();
    let [went] = &went[..] else {
        panic!("{went:?}")
    };
    let sent = opened(&node, &Packet::read(left(went)).unwrap());
    assert_eq!(
        (sent.message, sent.packet),
        (adopt(&client), first.packet())
    );
    assert!(node.tcb(&client).is_some());
}

fn left(resumed: &Resumed) -> &[u8] {
    match resumed {
        Resumed::Leaves(frame) => frame,
        other => panic!("{other:?}"),
    }
}

/// From then on this node passes on every packet of clients, as a switch does, and none of its own entries changes.
#[test]
fn all_that_clients_send_is_passed_on() {
    let (node, mut connection) = answered();
    let (_, first) = first(&node);
    let hold = holding(&node);
    assert!(hold.pass_on(&other(), LONG).unwrap().is_empty());
    let before = connection.entry(&node);
    let request = connection.data(get("/ds2/"));
    let ack = connection.empty();
    let fin = connection.empty().flags("FA");
    let stranger = Client::of(HTTP);
    let stray = stranger.ack(7).payload("who knows");
    for packet in [&request, &first, &ack, &fin, &stranger.syn(), &stray] {
        let seen = node.run(&packet.frame()).expect(Tx, PASSED_ON);
        assert_eq!(seen.frame, passed_on(packet));
    }
    connection.is_unchanged(&node, &before);
    assert!(hold.end().unwrap().is_empty());
    let counted = forwarded(&request);
    connection.send(&node, &request).expect(Tx, &counted);
}

/// A node that is in front again ends passing on by itself. Its daemon cannot wait for the one that holds.
#[test]
fn who_is_in_front_passes_nothing_on() {
    let (node, mut connection) = answered();
    let hold = holding(&node);
    hold.pass_on(&other(), LONG).unwrap();
    node.connection_server().end_hold().unwrap();
    let request = connection.data(get("/ds2/"));
    let counted = forwarded(&request);
    connection.send(&node, &request).expect(Tx, &counted);
}

#[test]
fn what_is_for_no_service_is_not_passed_on() {
    let (node, _) = answered();
    let hold = holding(&node);
    hold.pass_on(&other(), LONG).unwrap();
    let elsewhere = Client::of("10.77.0.101:80".parse().unwrap());
    node.run(&elsewhere.syn().frame())
        .expect(Pass, &[])
        .untouched();
}

/// Passing on has a time limit of its own.
#[test]
fn passing_on_ends_by_itself() {
    let (node, mut connection) = answered();
    let hold = holding(&node);
    hold.pass_on(&other(), Duration::ZERO).unwrap();
    let request = connection.data(get("/ds2/"));
    let counted = forwarded(&request);
    connection.send(&node, &request).expect(Tx, &counted);
}

/// A frame that does not fit inside another one goes on alone. The connection server that takes over handles it, but
/// it does not learn the MAC address that the client's frame came from.
#[test]
fn what_does_not_fit_inside_another_frame_goes_alone() {
    let (node, _) = answered();
    let hold = holding(&node);
    let client = Client::of(HTTP);
    let long = client.get(node.cookie(&client)).payload(vec![b'a'; 1450]);
    node.run(&long.frame()).expect(Drop, HELD);
    let went = hold.pass_on(&other(), LONG).unwrap();
    let mut alone = long.frame();
    alone[..6].copy_from_slice(&OTHER_MAC);
    alone[6..12].copy_from_slice(&CS_MAC);
    assert_eq!(went, [Resumed::Leaves(alone)]);
}

/// If the daemon dies while requests wait, they wait no longer than `begin()` said, and the next daemon does not
/// repeat them.
#[test]
fn nothing_waits_for_longer_than_was_said() {
    let (node, _) = answered();
    let hold = holding(&node);
    let (_, first) = first(&node);
    node.run(&first.frame()).expect(Drop, HELD);
    drop(hold);

    let hold = node.connection_server().hold().unwrap();
    hold.begin(Duration::ZERO).unwrap();
    node.run(&first.frame()).expect(Tx, &[("cs_adopt", 1)]);
    assert!(hold.end().unwrap().is_empty());
}

/// Requests for which the ring has no room are dropped. Their clients send them again.
#[test]
fn what_there_is_no_room_for_is_dropped_and_counted() {
    let (node, _) = answered();
    let hold = holding(&node);
    let (_, first) = first(&node);
    let most = HELD_RING_BYTES / HELD_FRAME_BYTES;
    // All frames run in one call, because a request that has been held for a second is dropped: its client sends it
    // again.
    let program = &node.connection_server().xdp;
    node.look();
    sys::run_on_frame(program.as_fd(), &first.frame(), None, most).unwrap();
    let lost = node.moved()["cs_held_lost"];
    assert!(lost > 0 && lost < u64::from(most), "{lost} of {most}");
    let went = hold.pass_on(&other(), LONG).unwrap();
    assert_eq!(went.len() as u64 + lost, u64::from(most));
    node.run(&first.frame()).expect(Tx, PASSED_ON);
}

#[test]
fn what_goes_on_with_a_connection_does_not_wait() {
    let (node, connection) = answered();
    holding(&node);
    let ack = connection.empty();
    node.run(&ack.frame()).expect(Tx, &forwarded(&ack));
    let data = connection.data(get("/ds2/"));
    node.run(&data.frame()).expect(Tx, &forwarded(&data));
    let fin = connection.empty().flags("FA");
    node.run(&fin.frame())
        .expect(Tx, &forwarded_and("cs_fin", &fin));
}
