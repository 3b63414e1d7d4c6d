//! Connections in the middle of a response whose data server drains: which way their packets go until the next data
//! server has the connection.

use baton_abi::{
    DATA_SERVER_DEAD, LCCP_ADOPT, LCCP_FLAG_RESUME, NO_DATA_SERVER, TCB_ADOPTING, TCB_AT_DOOR,
    TCB_RESUMING, TCB_WAITING,
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
const MOVED_ON: Counted<'_> = &[("cs_moved_on", 1)];
const MISMATCH: Counted<'_> = &[("lccp_mismatch", 1)];
const NOBODY: u16 = NO_DATA_SERVER as u16;

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
    let state = TCB_AT_DOOR as u8;
    assert_eq!(
        (entry.owner, entry.previous, entry.state),
        (1, NOBODY, state)
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
    let state = TCB_AT_DOOR as u8;
    assert_eq!(
        (entry.owner, entry.previous, entry.state),
        (0, NOBODY, state)
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

/// Data server `from` says that it has handed the connection to `next` with this packet.
fn says(node: &Node, connection: &Connection, from: u16, next: u16, packet: &Segment) -> Seen {
    let message = moved(&connection.client, Some(short(ds(next))));
    node.run(&node.said_by(from, &message, packet))
}

/// The entry's owner, the one before it, and its state.
fn place(node: &Node, connection: &Connection) -> (u16, u16, u32) {
    let entry = connection.entry(node);
    (entry.owner, entry.previous, entry.state.into())
}

/// The request whose response is under way, and the client's next one.
fn requests(node: &Node, connection: &Connection) -> [Segment; 2] {
    let next = connection.data(get("/ds3/"));
    let current = next.clone().seq(connection.entry(node).request_seq);
    assert_ne!(current.seq, next.seq);
    [current, next]
}

/// The last owner has the connection until it lets the response go. If the response ends there first, the client's next
/// request may be a third data server's: the connection goes there, and nothing is left to be moved.
#[test]
fn a_later_request_takes_it_from_the_last_owner_to_a_third() {
    // If the client has acknowledged more than with the request, it has something of the third data server's response.
    for (acknowledged, waits) in [(0, TCB_ADOPTING | TCB_WAITING), (1000, 0)] {
        let (node, orphans, mut connection, moving) = begun();
        let [_, next] = requests(&node, &connection);
        connection.send(&node, &next).expect(Tx, VIA);
        connection.ack = connection.ack.wrapping_add(acknowledged);
        node.run(&connection.empty().frame()).expect(Tx, VIA);
        says(&node, &connection, 0, 2, &next).expect(Drop, MOVED_ON);
        assert_eq!(place(&node, &connection), (2, NOBODY, TCB_AT_DOOR | waits));
        for late in [Step::Done, Step::Back, Step::Orphaned] {
            step(&node, &orphans, moving, late, "cs_move_late");
        }
        let known = Moving {
            request_seq: connection.entry(&node).request_seq,
            ..moving
        };
        step(&node, &orphans, known, Step::Done, "cs_move_late");
        assert_eq!(place(&node, &connection), (2, NOBODY, TCB_AT_DOOR | waits));
        if waits != 0 {
            let seen = node.run(&next.frame());
            let seen = seen.expect(Tx, &[("cs_adopt_again", 1)]);
            assert_eq!(sent(&node, &seen).to, ds(2));
        }
    }
}

/// Only a later request shows that the response is over, and only the last owner knows of one. An older word of the last
/// owner, or one of the next data server, ends no move. Nor does one that names the next data server: the connection
/// goes there anyway.
#[test]
fn no_other_word_ends_the_move() {
    let (node, orphans, connection, moving) = begun();
    let [current, next] = requests(&node, &connection);
    let before = connection.entry(&node);
    for (from, to, packet) in [
        (0, 2, &current),
        (0, 1, &current),
        (0, 1, &next),
        (0, 0, &next),
        (1, 2, &current),
        (1, 2, &next),
        (1, 0, &next),
        (2, 0, &next),
        (2, 1, &next),
    ] {
        says(&node, &connection, from, to, packet).expect(Drop, MISMATCH);
        connection.is_unchanged(&node, &before);
    }
    goes_by_the_last(&node, &connection, &connection.empty());
    step(&node, &orphans, moving, Step::Done, "cs_move_done");
}

/// The rest of a response is to come from the owner, and no other data server has the connection. The owner hands it on
/// only with a later request: then the rest has been sent, and nothing is left to be resumed.
#[test]
fn a_later_request_ends_the_resuming() {
    let (node, orphans, connection, moving) = begun();
    step(&node, &orphans, moving, Step::Orphaned, "cs_move_orphaned");
    let before = connection.entry(&node);
    assert_eq!(
        place(&node, &connection),
        (1, NOBODY, TCB_AT_DOOR | TCB_RESUMING)
    );
    let [current, next] = requests(&node, &connection);
    for (from, to, packet) in [(1, 2, &current), (0, 2, &next), (0, 1, &next)] {
        says(&node, &connection, from, to, packet).expect(Drop, MISMATCH);
        connection.is_unchanged(&node, &before);
    }
    says(&node, &connection, 1, 2, &next).expect(Drop, MOVED_ON);
    let state = TCB_AT_DOOR | TCB_ADOPTING | TCB_WAITING;
    assert_eq!(place(&node, &connection), (2, NOBODY, state));
    assert_eq!(connection.entry(&node).request_seq, next.seq);
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
