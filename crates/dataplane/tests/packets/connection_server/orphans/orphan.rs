//! Connections whose data server is dead, or takes no messages.

use baton_abi::{
    DATA_SERVER_ASKED_FOR, DATA_SERVER_DEAD, DATA_SERVER_DEAF, DATA_SERVER_ROUTED, LCCP_ADOPT,
    LCCP_FLAG_RESUME,
};

use crate::{
    at_once::come_twice_at_once,
    connection_server::http::{ANSWER, Connection, forwarded, get, routes_by_name},
    prelude::*,
    seen::Seen,
};

/// The offset of the command in a message's frame. The flags are the byte behind it.
const COMMAND: usize = LCCP + 2;

/// A connection server with routes by name: the first data server gets a connection that asks for `/ds1/`.
fn node() -> Node {
    let node = Node::fresh_cs();
    routes_by_name(&node);
    node
}

/// Marks the first data server as dead. The others of its pool get the requests that come.
fn kill_first(node: &Node) {
    mark_first(node, DATA_SERVER_DEAD);
}

fn mark_first(node: &Node, flag: u32) {
    let mut way = data_server(0);
    way.flags |= flag as u8;
    node.plane().set_data_server(0, &way).unwrap();
    for pool in 0..=HTTP_SERVICE + 3 {
        let mut found = node.routing().pool(pool).unwrap();
        found.members = [0b110, 0, 0, 0];
        node.routing().set_pool(pool, &found).unwrap();
        node.set_choices(pool, &[1, 1, 1]);
    }
}

/// A data server takes no messages: the connections that it has go on, and a request that cannot have reached it goes
/// to another one.
#[test]
fn of_a_data_server_that_does_not_hear_only_what_it_has_goes_on() {
    let node = node();
    let mut connection = Connection::open(&node, get("/ds1/"));
    mark_first(&node, DATA_SERVER_DEAF);
    let mut again = connection;
    again.seq -= get("/ds1/").len() as u32;
    let again = again.data(get("/ds1/"));

    // The response comes, so the data server has the connection.
    let before = connection.entry(&node);
    connection.ack = connection.ack.wrapping_add(ANSWER);
    let ack = connection.empty();
    let seen = node.run(&ack.frame()).expect(Tx, &forwarded(&ack));
    assert_eq!(seen.packet().ethernet.destination, ds_mac(0));
    let next = connection.data(get("/ds2/"));
    let counted = forwarded(&next);
    let seen = connection.send(&node, &next).expect(Tx, &counted);
    assert_eq!(seen.packet().ethernet.destination, ds_mac(0));
    assert_eq!(connection.entry(&node).owner, 0);

    // The response does not come, and the client sends the request again.
    let key = node.tcb_key(&connection.client);
    node.connection_server().set_tcb(&key, &before).unwrap();
    let seen = node
        .run(&again.frame())
        .expect(Tx, &[("cs_deaf", 1), ("cs_orphan_adopt", 1)]);
    let message = sent(&node, &seen);
    assert_eq!((message.to, message.packet), (ds(1), again.packet()));
    assert_eq!(message.message, adopt(&connection.client));
    assert_eq!(connection.entry(&node).owner, 1);

    // If the data server is dead as well, the request goes to another one too, and `cs_deaf` is not counted.
    node.connection_server().set_tcb(&key, &before).unwrap();
    mark_first(&node, DATA_SERVER_DEAF | DATA_SERVER_DEAD);
    let seen = node.run(&again.frame());
    seen.expect(Tx, &[("cs_orphan_adopt", 1)]);
}

/// Behind a router clients' packets travel in messages too, which the data server refuses. It may still be sending,
/// and nobody can make it stop. So connections that it has wait for it, and only a request that cannot have reached
/// it goes to another one.
#[test]
fn behind_a_router_what_it_has_waits_for_it() {
    let node = node();
    let mut connection = Connection::open(&node, get("/ds1/"));
    mark_first(&node, DATA_SERVER_DEAF | DATA_SERVER_ROUTED);
    let unanswered = connection.entry(&node);
    let mut again = connection;
    again.seq -= get("/ds1/").len() as u32;
    let again = again.data(get("/ds1/"));
    let is_forwarded = |connection: &Connection, seen: &Seen, packet: &Segment| {
        let message = sent(&node, seen);
        assert_eq!((message.to, message.packet), (ds(0), packet.packet()));
        assert_eq!(message.message, forward(&connection.client));
        assert_eq!(connection.entry(&node).owner, 0);
    };

    // An acknowledgement of the response, a next request for any pool, and that request once more all go to the
    // owner.
    connection.ack = connection.ack.wrapping_add(ANSWER);
    let ack = connection.empty();
    let seen = node.run(&ack.frame()).expect(Tx, &forwarded(&ack));
    is_forwarded(&connection, &seen, &ack);
    let next = connection.data(get("/ds2/"));
    let counted = forwarded(&next);
    let seen = connection.send(&node, &next).expect(Tx, &counted);
    is_forwarded(&connection, &seen, &next);
    let seen = node.run(&next.frame()).expect(Tx, &forwarded(&next));
    is_forwarded(&connection, &seen, &next);

    // The first request is not answered yet.
    let key = node.tcb_key(&connection.client);
    node.connection_server().set_tcb(&key, &unanswered).unwrap();
    let seen = node.run(&again.frame());
    let seen = seen.expect(Tx, &[("cs_deaf", 1), ("cs_orphan_adopt", 1)]);
    let message = sent(&node, &seen);
    assert_eq!((message.to, message.packet), (ds(1), again.packet()));
    assert_eq!(message.message, adopt(&connection.client));
    assert_eq!(connection.entry(&node).owner, 1);
}

#[test]
fn a_request_that_nobody_has_answered_goes_to_another() {
    let node = node();
    let mut connection = Connection::open(&node, get("/ds1/"));
    kill_first(&node);
    connection.seq -= get("/ds1/").len() as u32;
    let again = connection.data(get("/ds1/"));
    let seen = connection.send(&node, &again);
    let seen = seen.expect(Tx, &[("cs_orphan_adopt", 1)]);
    let message = sent(&node, &seen);
    assert_eq!((message.to, message.packet), (ds(1), again.packet()));
    assert_eq!(message.message, adopt(&connection.client));
    assert_eq!(connection.entry(&node).owner, 1);
}

/// Two processors may handle copies of the request at the same moment. One of them chooses the other data server, and the
/// request is done there only.
#[test]
fn of_two_copies_at_the_same_moment_one_goes_to_another() {
    const CONNECTIONS: usize = 200;
    let node = node();
    node.set_choices(HTTP_SERVICE, &[0; 3]);
    let connections: Vec<_> = (0..CONNECTIONS)
        .map(|_| Connection::open(&node, get("/")))
        .collect();
    kill_first(&node);
    // The two others take turns, so that copies would go to different ones.
    node.set_choices(HTTP_SERVICE, &[1, 2, 1]);
    let frames: Vec<_> = connections
        .iter()
        .map(|connection| {
            let first = connection.data(get("/"));
            first.seq(connection.client.isn.wrapping_add(1)).frame()
        })
        .collect();
    node.look();
    come_twice_at_once(&node, &frames);
    let counted = node.moved();
    let of = |name: &str| counted.get(name).copied().unwrap_or(0);
    assert_eq!(of("cs_orphan_adopt"), CONNECTIONS as u64, "{counted:?}");
    // The other copy waits, or goes after the first.
    let others = of("cs_orphan_waits") + of("cs_adopt_again");
    assert_eq!(others, CONNECTIONS as u64, "{counted:?}");
}

/// Checks that the acknowledgement goes to the third data server, as an ADOPT that begins in the middle of a
/// response.
#[track_caller]
pub fn goes_to_the_rest(node: &Node, ack: &Segment) {
    let seen = node.run(&ack.frame()).expect(Tx, &[("cs_resume", 1)]);
    assert_eq!(seen.packet().ethernet.destination, ds_mac(2));
    let said = [LCCP_ADOPT, LCCP_FLAG_RESUME].map(|word| word as u8);
    assert_eq!(seen.frame[COMMAND..COMMAND + 2], said);
    assert_eq!(seen.frame[INNER..], ack.packet());
}

/// A silent client may wait for a response, however long it is silent. Only the owner can say that its connection is
/// at rest.
#[test]
fn a_muster_finds_who_is_not_at_rest() {
    let node = node();
    let orphans = node.connection_server().orphans().unwrap();
    let waits = Connection::open(&node, get("/ds1/"));
    let answered = Connection::answered(&node);
    let ack = answered.empty();
    node.run(&ack.frame());
    let elsewhere = Connection::open(&node, get("/ds2/"));
    let found = || {
        let found = orphans.find_flows(0).unwrap();
        let mut clients: Vec<_> = found.iter().map(|(key, _)| key.ends().0).collect();
        clients.sort_unstable();
        clients
    };
    let mut both = vec![waits.client.address, answered.client.address];
    both.sort_unstable();
    assert_eq!(found(), both);
    tell_rest(&node, &answered, &ack);
    assert_eq!(found(), [waits.client.address]);
    orphans.forget(&node.tcb_key(&waits.client)).unwrap();
    orphans.forget(&node.tcb_key(&waits.client)).unwrap();
    assert!(found().is_empty());
    assert!(node.tcb(&elsewhere.client).is_some());
}

/// The first data server says that the connection is at rest at the numbers of this acknowledgement.
pub fn tell_rest(node: &Node, connection: &Connection, ack: &Segment) {
    let message = moved(&connection.client, Some(short(ds(0))));
    let told = node.said_by(0, &message, ack);
    node.run(&told).expect(Drop, &[("cs_rest", 1)]);
}

/// A forged packet without the connection's numbers gets a RST that no client believes. The connection stays, and its
/// next request goes to another data server.
#[test]
fn who_does_not_know_the_numbers_ends_nothing() {
    let node = node();
    let mut connection = Connection::open(&node, get("/ds1/"));
    connection.ack = connection.ack.wrapping_add(ANSWER);
    let ack = connection.empty();
    node.run(&ack.frame());
    tell_rest(&node, &connection, &ack);
    kill_first(&node);
    let before = connection.entry(&node);
    let mut forged = connection;
    forged.seq = forged.seq.wrapping_add(1 << 28);
    forged.ack = forged.ack.wrapping_add(1 << 28);
    node.run(&forged.data(get("/ds1/")).frame())
        .expect(Tx, &[("cs_jump", 1), ("cs_orphan_reset", 1)]);
    assert_eq!(connection.entry(&node), before);
}

/// A dead data server may have handed the connection on, and its MOVED may be lost. The data server that has the
/// connection says so, because it was asked or because the connection is at rest there.
#[test]
fn of_the_dead_whoever_has_a_connection_is_believed() {
    for next in [None, Some(short(ds(1)))] {
        let node = node();
        let mut connection = Connection::open(&node, get("/ds1/"));
        connection.ack = connection.ack.wrapping_add(ANSWER);
        let ack = connection.empty();
        node.run(&ack.frame());
        let message = moved(&connection.client, next);
        let says = |from: u16, packet: &Segment| node.run(&node.said_by(from, &message, packet));
        const MISMATCH: &[(&str, u64)] = &[("lccp_mismatch", 1)];
        // While the owner lives, only the owner is believed.
        says(1, &ack).expect(Drop, MISMATCH);
        kill_first(&node);
        let mut far = connection;
        far.seq = far.seq.wrapping_add(1 << 24);
        says(1, &far.empty()).expect(Drop, MISMATCH);
        assert_eq!(connection.entry(&node).owner, 0);
        says(1, &ack).expect(Drop, &[("cs_moved_from_dead", 1)]);
        assert_eq!(connection.entry(&node).owner, 1);
        let request = connection.data(get("/ds2/"));
        let seen = connection.send(&node, &request);
        let seen = seen.expect(Tx, &forwarded(&request));
        assert_eq!(seen.packet().ethernet.destination, ds_mac(1));
    }
}

/// As long as the other data servers are being asked, no client gets an answer, and no request goes to another one.
#[test]
fn until_the_others_have_been_asked_everything_waits() {
    let node = node();
    let mut connection = Connection::open(&node, get("/ds1/"));
    mark_first(&node, DATA_SERVER_DEAD | DATA_SERVER_ASKED_FOR);
    let ack = connection.empty();
    let first = connection.seq;
    connection.seq -= get("/ds1/").len() as u32;
    let again = connection.data(get("/ds1/"));
    connection.seq = first;
    let before = connection.entry(&node);
    for packet in [&again, &ack, &connection.data(get("/ds1/"))] {
        node.run(&packet.frame())
            .expect(Drop, &[("cs_orphan_waits", 1)]);
        assert_eq!(connection.entry(&node).owner, before.owner);
    }
}

/// A NONE from a data server that was asked for a dead one's connections and does not have this one changes nothing.
#[test]
fn who_does_not_have_a_connection_of_the_dead_changes_nothing() {
    let node = node();
    let connection = Connection::answered(&node);
    kill_first(&node);
    let before = connection.entry(&node);
    let none = none(&connection.client, u8::MAX, false);
    let packet = connection.empty().packet();
    let answer = to_cs(1, &none, node.now(), &key().lccp(), &packet);
    node.run(&answer).expect(Drop, &[("cs_unclaimed", 1)]);
    assert_eq!(connection.entry(&node), before);
}
