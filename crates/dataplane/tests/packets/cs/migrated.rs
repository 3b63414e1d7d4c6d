//! Entries that come from another connection server, and are older than their connections.

use std::collections::HashMap;

use baton_abi::{MAX_DATA_SERVERS, TCB_PINNED, Tcb, TcbKey};
use baton_wire::{Message, TcbPart};

use super::{
    handover::MOVED,
    http::{ANSWER, Connection, forwarded, forwarded_and, get, routes_by_name},
};
use crate::{
    cluster::{ds, ds_mac, key},
    lccp::{flow, handover, linux_tcb, sent, to_cs},
    node::{Drop, Node, Tx},
    segment::Segment,
};

#[test]
fn the_copy_is_the_table() {
    let node = Node::fresh_cs_of(1 << 17);
    let entries = node.plane().entries().unwrap();
    assert!(entries.read().unwrap().is_empty());
    let all: HashMap<[u8; 16], (TcbKey, Tcb)> = (0..50_000u32).map(numbered).collect();
    let (keys, tcbs): (Vec<_>, Vec<_>) = all.values().copied().unzip();
    entries.write(&keys, &tcbs).unwrap();
    let copied = entries.read().unwrap();
    assert_eq!(copied.len(), all.len());
    for (key, tcb) in copied {
        assert_eq!(all[&key.client], (key, tcb));
        assert_eq!(entries.get(&key).unwrap(), Some(tcb));
    }
}

#[test]
fn what_indices_mean_is_copied_in_their_order() {
    let node = Node::fresh_cs();
    let copied = node.plane().entries().unwrap().data_servers().unwrap();
    assert_eq!(copied.len(), MAX_DATA_SERVERS as usize);
    for (index, copied) in (0..).zip(copied) {
        assert_eq!(copied, node.plane().data_server(index).unwrap());
    }
}

fn numbered(number: u32) -> ([u8; 16], (TcbKey, Tcb)) {
    let mut client = [0; 16];
    client[12..].copy_from_slice(&number.to_be_bytes());
    let key = TcbKey {
        client,
        be_client_port: 9,
        ..TcbKey::default()
    };
    let tcb = Tcb {
        request_seq: number,
        next_request: number * 3,
        ..Tcb::default()
    };
    (client, (key, tcb))
}

/// The other one has seen acknowledgements that this entry knows nothing of: few, or those of a download.
#[test]
fn after_acknowledgements_the_next_request_moves() {
    for missed in [0, ANSWER, 64 << 20] {
        let (node, mut connection) = answered();
        connection.ack = connection.ack.wrapping_add(missed);
        let request = connection.data(get("/ds2/"));
        // A download goes on before its client asks for more.
        if missed > ANSWER {
            let ack = connection.empty();
            let seen = node.run(&ack.frame()).expect(Tx, &forwarded(&ack));
            assert_eq!(seen.packet().ethernet.destination, ds_mac(0));
        }
        let seen = connection.send(&node, &request).expect(Tx, MOVED);
        let message = sent(&node, &seen);
        assert_eq!(message.to, ds(0));
        assert_eq!(message.message, handover(&connection.client, 1));
    }
}

/// The other one has seen a request, with which the connection has moved. The next one is not taken for
/// that: who had the connection gets it, has it not, and all are asked.
#[test]
fn a_request_that_was_missed_pins_and_the_owner_is_found() {
    let (node, mut connection) = answered();
    let missed = get("/ds2/").len() as u32;
    connection.seq = connection.seq.wrapping_add(missed);
    connection.ack = connection.ack.wrapping_add(ANSWER);
    let request = connection.data(get("/ds3/"));
    let seen = node.run(&request.frame());
    let seen = seen.expect(Tx, &forwarded_and("cs_pinned", &request));
    assert_eq!(seen.packet().ethernet.destination, ds_mac(0));

    let none = Message::None {
        flow: flow(&connection.client),
        attempt: 0,
        is_plain: false,
    };
    let seen = node.run(&answer(&node, 0, &none, &request));
    seen.expect(Tx, &[("cs_claim", 1), ("cs_none", 1)]);
    let tcb = TcbPart {
        attempt: 0,
        ..linux_tcb()
    };
    let moved = Message::Moved {
        flow: flow(&connection.client),
        tcb,
        next: None,
    };
    node.run(&answer(&node, 1, &moved, &request))
        .expect(Drop, &[("cs_moved", 1)]);
    let entry = connection.entry(&node);
    assert_eq!((entry.owner, u32::from(entry.state)), (1, TCB_PINNED));
}

/// The same request once more, which only the other one has seen: taken for the next, as it was there, and
/// the owner is asked, as it was there. It has handed the connection over, and passes the request on.
#[test]
fn a_request_sent_again_goes_the_same_way() {
    let (node, mut connection) = answered();
    let before = connection.entry(&node);
    let request = connection.data(get("/ds2/"));
    let first = connection.send(&node, &request).expect(Tx, MOVED);
    let key = node.tcb_key(&connection.client);
    node.plane().set_tcb(&key, &before).unwrap();
    let again = node.run(&request.frame()).expect(Tx, MOVED);
    let (first, again) = (sent(&node, &first), sent(&node, &again));
    assert_eq!((first.to, &first.message), (again.to, &again.message));
    assert_eq!(first.packet, again.packet);
}

/// The client acknowledges something else before it sends the request again: that has not come yet.
#[test]
fn what_was_held_back_is_a_request_when_it_comes_again() {
    let (node, mut connection) = answered();
    let request = connection.data(get("/ds2/"));
    let mut later = connection;
    later.seq += request.payload.len() as u32;
    let ack = later.empty();
    node.run(&ack.frame()).expect(Tx, &forwarded(&ack));
    connection.send(&node, &request).expect(Tx, MOVED);
}

/// The entry is as of the moment when the first data server began to answer; the client goes on where it
/// is by now.
pub fn answered() -> (Node, Connection) {
    let node = Node::fresh_cs();
    routes_by_name(&node);
    let connection = Connection::answered(&node);
    (node, connection)
}

fn answer(node: &Node, from: u16, message: &Message, packet: &Segment) -> Vec<u8> {
    to_cs(from, message, node.now(), &key().lccp(), &packet.packet())
}
