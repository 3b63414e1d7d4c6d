//! Connections in the middle of a response whose data server drains: which way their packets go until the next data
//! server has the connection.

use baton_abi::{
    DATA_SERVER_DEAD, LCCP_ADOPT, LCCP_FLAG_RESUME, NO_DATA_SERVER, TCB_ADOPTING, TCB_AT_DOOR,
    TCB_RESUMING,
};
use baton_dataplane::{Moving, Orphans, Step};

use crate::{
    connection_server::{
        http::{Connection, forwarded, get},
        orphans::owned_orphan::{answering, change_to_itself, node},
    },
    prelude::*,
};

const VIA: Counted<'_> = &[("cs_move_via", 1)];

/// A node, and a connection whose first data server drains and has sent some of the response to a request.
fn busy() -> (Node, Orphans, Connection) {
    let (node, orphans) = node();
    let (mut connection, kept) = answering(&node, &orphans, 0);
    orphans
        .change(change_to_itself(&node, &connection, &kept))
        .unwrap()
        .expect("is as it was");
    connection.ack = connection.ack.wrapping_add(1000);
    let ack = connection.empty();
    node.run(&ack.frame()).expect(Tx, &forwarded(&ack));
    assert_eq!(connection.entry(&node).owner, 0);
    (node, orphans, connection)
}

fn between(node: &Node, connection: &Connection) -> Moving {
    Moving {
        key: node.tcb_key(&connection.client),
        request_seq: connection.entry(node).request_seq,
        from: 0,
        to: 1,
    }
}

#[track_caller]
fn step(node: &Node, orphans: &Orphans, moving: Moving, step: Step, counter: &str) {
    node.look();
    let found = orphans.step(moving, step).unwrap();
    assert_eq!(found.is_some(), counter != "cs_move_late");
    let moved: Vec<_> = node.moved().into_iter().collect();
    assert_eq!(moved, [(counter.to_owned(), 1)]);
}

fn begun() -> (Node, Orphans, Connection, Moving) {
    let (node, orphans, connection) = busy();
    let moving = between(&node, &connection);
    step(&node, &orphans, moving, Step::Begin, "cs_move");
    let entry = connection.entry(&node);
    assert_eq!((entry.owner, entry.previous), (1, 0));
    assert_eq!(
        u32::from(entry.state),
        TCB_AT_DOOR | TCB_RESUMING | TCB_ADOPTING
    );
    (node, orphans, connection, moving)
}

/// Checks that the packet goes to the last owner, which sends it on if it has let the connection go.
#[track_caller]
fn goes_by_the_last(node: &Node, connection: &Connection, packet: &Segment) {
    let message = sent(node, &node.run(&packet.frame()).expect(Tx, VIA));
    assert_eq!(message.to, ds(0));
    assert_eq!(message.message, forward_to(&connection.client, 1));
    assert_eq!(message.packet, packet.packet());
}

/// Packets go by the last owner however far apart their numbers are: a fast download is acknowledged in large steps.
#[test]
fn all_packets_go_by_the_last_owner() {
    let (node, _, mut connection, _) = begun();
    for step in [0, 1448, 1 << 19, 1 << 22, 1448] {
        connection.ack = connection.ack.wrapping_add(step);
        let seen = connection.empty();
        goes_by_the_last(&node, &connection, &seen);
        let state = u32::from(connection.entry(&node).state);
        assert_eq!(
            state,
            TCB_AT_DOOR | TCB_RESUMING | TCB_ADOPTING,
            "after {step}"
        );
    }
}

#[test]
fn once_the_next_has_it_they_go_straight() {
    let (node, orphans, connection, moving) = begun();
    step(&node, &orphans, moving, Step::Done, "cs_move_done");
    let ack = connection.empty();
    let seen = node.run(&ack.frame()).expect(Tx, &forwarded(&ack));
    assert_eq!(seen.packet().ethernet.destination, ds_mac(1));
    let entry = connection.entry(&node);
    let nobody = NO_DATA_SERVER as u16;
    let state = TCB_AT_DOOR as u8;
    assert_eq!(
        (entry.owner, entry.previous, entry.state),
        (1, nobody, state)
    );
    step(&node, &orphans, moving, Step::Done, "cs_move_late");
}

#[test]
fn one_that_stays_goes_on_where_it_was() {
    let (node, orphans, connection, moving) = begun();
    step(&node, &orphans, moving, Step::Back, "cs_move_back");
    let ack = connection.empty();
    let seen = node.run(&ack.frame()).expect(Tx, &forwarded(&ack));
    assert_eq!(seen.packet().ethernet.destination, ds_mac(0));
    let entry = connection.entry(&node);
    let nobody = NO_DATA_SERVER as u16;
    let state = TCB_AT_DOOR as u8;
    assert_eq!(
        (entry.owner, entry.previous, entry.state),
        (0, nobody, state)
    );
}

/// Checks that the client's acknowledgement goes as ADOPT to the data server that has the rest of the response.
#[track_caller]
fn is_resumed(node: &Node, ack: &Segment) {
    let seen = node.run(&ack.frame()).expect(Tx, &[("cs_resume", 1)]);
    assert_eq!(seen.packet().ethernet.destination, ds_mac(1));
    let said = [LCCP_ADOPT, LCCP_FLAG_RESUME].map(|word| word as u8);
    assert_eq!(seen.frame[LCCP + 2..LCCP + 4], said);
}

#[test]
fn what_neither_has_is_resumed() {
    let (node, orphans, connection, moving) = begun();
    step(&node, &orphans, moving, Step::Orphaned, "cs_move_orphaned");
    is_resumed(&node, &connection.empty());
}

/// The connection server resumes the connection when the last owner is dead, even before the daemon knows of it.
#[test]
fn with_the_last_owner_dead_it_is_resumed() {
    let (node, _, connection, _) = begun();
    let mut way = data_server(0);
    way.flags |= DATA_SERVER_DEAD as u8;
    node.plane().set_data_server(0, &way).unwrap();
    is_resumed(&node, &connection.empty());
}

/// NONE from the next data server leaves the entry as it is, also if the last owner is dead. Otherwise the entry
/// would name the last owner again, and the daemon could not have the response resumed.
#[test]
fn that_the_next_one_has_nothing_yet_takes_nothing_back() {
    for is_dead in [false, true] {
        let (node, orphans, connection, moving) = begun();
        if is_dead {
            let mut way = data_server(0);
            way.flags |= DATA_SERVER_DEAD as u8;
            node.plane().set_data_server(0, &way).unwrap();
        }
        let before = connection.entry(&node);
        let none = none(&connection.client, 0, false);
        let packet = connection.empty().packet();
        let frame = to_cs(1, &none, node.now(), &key().lccp(), &packet);
        node.run(&frame).expect(Drop, &[("cs_none", 1)]);
        assert_eq!(connection.entry(&node), before);
        step(&node, &orphans, moving, Step::Orphaned, "cs_move_orphaned");
    }
}

#[test]
fn only_what_is_as_the_daemon_believes_is_moved() {
    let (node, orphans, connection) = busy();
    let moving = between(&node, &connection);
    let late = |moving, what| step(&node, &orphans, moving, what, "cs_move_late");
    for other in [
        Moving {
            request_seq: moving.request_seq.wrapping_add(1),
            ..moving
        },
        Moving { from: 2, ..moving },
    ] {
        late(other, Step::Begin);
    }
    for early in [Step::Back, Step::Done, Step::Orphaned] {
        late(moving, early);
    }
    // The client closes the connection.
    let fin = connection.empty().flags("FA");
    let seen = node.run(&fin.frame());
    assert_eq!(seen.counted.get("cs_fin"), Some(&1), "{seen:?}");
    late(moving, Step::Begin);

    // The client has nothing of the response yet.
    let fresh = Node::fresh_cs();
    fresh.set_choices(HTTP_SERVICE, &[0]);
    let connection = Connection::open(&fresh, get("/"));
    let orphans = fresh.connection_server().orphans().unwrap();
    let moving = between(&fresh, &connection);
    step(&fresh, &orphans, moving, Step::Begin, "cs_move_late");
}
