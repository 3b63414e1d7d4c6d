//! Two processors with a copy of a request each: see bpf/cs/turn.h.

use baton_abi::Tcb;

use super::prepared;
use crate::{
    cs::http::{Connection, get},
    node::{Drop, Node, Tx},
};

fn with_turn(node: &Node, connection: &Connection, turn: u8, age: u32) -> Tcb {
    let before = connection.entry(node);
    let entry = Tcb {
        turn,
        seen: before.seen.wrapping_sub(age),
        ..before
    };
    let key = node.tcb_key(&connection.client);
    node.plane().set_tcb(&key, &entry).unwrap();
    entry
}

/// The other one is at it: this copy changes nothing, wherever it is for.
#[test]
fn in_the_middle_of_a_turn() {
    for target in ["/ds1/", "/ds2/"] {
        let node = prepared();
        let connection = Connection::answered(&node);
        let before = with_turn(&node, &connection, 7, 0);
        let request = connection.data(get(target));
        let expected = [("cs_noted_meanwhile", 1), ("cs_request", 1)];
        node.run(&request.frame()).expect(Drop, &expected);
        // What it acknowledges its client has got all the same.
        let after = connection.entry(&node);
        let same = Tcb {
            last_ack: after.last_ack,
            seen: after.seen,
            state: after.state,
            ..before
        };
        assert_eq!(after, same, "{target}");
    }
}

/// User space has written back what it read in the middle of one: it ends.
#[test]
fn a_turn_that_nobody_has() {
    for turn in [1, 255] {
        let node = prepared();
        let connection = Connection::answered(&node);
        with_turn(&node, &connection, turn, 2);
        let request = connection.data(get("/ds2/"));
        let expected = [("cs_handover", 1), ("cs_request", 1)];
        node.run(&request.frame()).expect(Tx, &expected);
        assert_eq!(connection.entry(&node).turn % 2, 0);
    }
}

/// Each request has another number, so that whoever has looked before sees that one was noted since.
#[test]
fn each_request_takes_a_turn() {
    let node = prepared();
    let mut connection = Connection::answered(&node);
    for target in ["/ds1/", "/ds2/"] {
        let before = connection.entry(&node).turn;
        let request = connection.data(get(target));
        connection.send(&node, &request);
        assert_eq!(connection.entry(&node).turn, before.wrapping_add(2));
        connection.ack += super::ANSWER;
    }
}
