//! Where the next request begins is known only while requests and responses take turns. From the first
//! sign that they do not, the owner keeps the connection.

use baton_abi::{BEGINS_ONLY_CONFIRM, TCB_PINNED};
use baton_wire::{Keep, Message};

use super::http::{
    ANSWER, BEHIND_ADOPT, Connection, forwarded, forwarded_and, get, routes_by_name,
};
use crate::{
    cluster::{ds_mac, key},
    lccp::{flow, sent, to_cs},
    node::{Counted, Drop, Node, Tx},
    segment::Segment,
};

/// The packet pins the connection and goes to its owner, as does a good request behind it.
#[track_caller]
fn pins(node: &Node, connection: Connection, packet: &Segment) {
    pins_and(node, connection, packet, &forwarded(packet));
}

/// The same, and this is how the packet goes.
#[track_caller]
fn pins_and(node: &Node, mut connection: Connection, packet: &Segment, goes: Counted<'_>) {
    let counted = [goes, &[("cs_pinned", 1)]].concat();
    let seen = node.run(&packet.frame()).expect(Tx, &counted);
    assert_eq!(seen.packet().ethernet.destination, ds_mac(0));
    let entry = connection.entry(node);
    assert_ne!(u32::from(entry.state) & TCB_PINNED, 0);
    connection.seq = packet.seq.wrapping_add(packet.payload.len() as u32);
    connection.ack = packet.ack.wrapping_add(ANSWER);
    for target in ["/ds2/", "/ds3/", "/"] {
        let next = connection.data(get(target));
        let seen = connection.send(node, &next).expect(Tx, &forwarded(&next));
        assert_eq!(seen.packet().ethernet.destination, ds_mac(0));
        connection.ack = connection.ack.wrapping_add(ANSWER);
    }
    assert_eq!(connection.entry(node).owner, 0);
}

fn prepared() -> (Node, Connection) {
    let node = Node::cs();
    routes_by_name(&node);
    let connection = Connection::answered(&node);
    (node, connection)
}

/// It acknowledges no byte of the response to the first.
#[test]
fn a_second_request_before_the_first_is_answered() {
    let node = Node::cs();
    routes_by_name(&node);
    let connection = Connection::open(&node, get("/ds1/"));
    let second = connection.data(get("/ds2/"));
    pins_and(&node, connection, &second, BEHIND_ADOPT);
}

#[test]
fn a_third_request_before_the_second_is_answered() {
    let (node, mut connection) = prepared();
    let second = connection.data(get("/ds1/second"));
    let counted = forwarded_and("cs_request", &second);
    connection.send(&node, &second).expect(Tx, &counted);
    pins(&node, connection, &connection.data(get("/ds2/third")));
}

/// The last piece of the response is acknowledged by the request itself, or by packets before.
#[test]
fn acknowledged_before_or_with_it() {
    for before in [0, 1, 500, ANSWER] {
        let (node, mut connection) = prepared();
        let ack = Segment {
            ack: connection.ack - ANSWER + before,
            ..connection.empty()
        };
        node.run(&ack.frame()).expect(Tx, &forwarded(&ack));
        let request = connection.data(get("/ds2/"));
        let counted = [("cs_handover", 1), ("cs_request", 1)];
        connection.send(&node, &request).expect(Tx, &counted);
    }
}

#[test]
fn a_gap() {
    for missing in [1, 100, 30_000] {
        let (node, connection) = prepared();
        let request = connection.data(get("/ds2/"));
        let seq = request.seq + missing;
        pins(&node, connection, &request.seq(seq));
    }
}

/// A part of it was sent before.
#[test]
fn an_overlap() {
    for (sent_before, whole) in [
        ("x", get("/ds2/")),
        ("", format!("{}{}", get("/ds1/"), get("/ds2/"))),
    ] {
        let (node, connection) = prepared();
        let known = get("/ds1/").len() as u32;
        let packet = match sent_before {
            "" => connection.data(whole).seq(connection.seq - known),
            _ => connection.data(whole).seq(connection.seq - 1),
        };
        pins(&node, connection, &packet);
    }
}

/// Far from where the connection was: anybody can send that, so nothing is believed before its owner has said that it is
/// the next byte. Then nobody knows what was in between.
#[test]
fn a_jump() {
    let (node, connection) = prepared();
    let far = connection.data(get("/ds2/"));
    let seq = far.seq + 0x2_0000;
    let far = far.seq(seq);
    let before = connection.entry(&node);
    let seen = node.run(&far.frame());
    let seen = seen.expect(Tx, &[("cs_begins", 1), ("cs_jump", 1)]);
    let message = sent(&node, &seen);
    let flow = flow(&connection.client);
    let how = BEGINS_ONLY_CONFIRM as u8;
    assert_eq!(message.message, Message::Begins { flow, how });
    connection.is_unchanged(&node, &before);
    let answer = |from| {
        let message = Message::Begun {
            flow,
            keep: Keep::More,
            at: seq,
            responses: 1,
        };
        to_cs(from, &message, node.now(), &key().lccp(), &far.packet())
    };
    node.run(&answer(1)).expect(Drop, &[("lccp_mismatch", 1)]);
    connection.is_unchanged(&node, &before);
    node.run(&answer(0))
        .expect(Drop, &[("cs_jumped", 1), ("cs_pinned", 1)]);
    let mut connection = Connection {
        seq: seq + far.payload.len() as u32,
        ack: far.ack + ANSWER,
        ..connection
    };
    let next = connection.data(get("/ds2/"));
    connection.send(&node, &next).expect(Tx, &forwarded(&next));
}

/// Without data nothing is missing.
#[test]
fn a_jump_of_an_ack() {
    let (node, mut connection) = prepared();
    connection.ack += 0x20_0000;
    let ack = connection.empty();
    node.run(&ack.frame()).expect(Tx, &forwarded(&ack));
    let request = connection.data(get("/ds2/"));
    let counted = [("cs_handover", 1), ("cs_request", 1)];
    connection.send(&node, &request).expect(Tx, &counted);
}

/// What was said before begins nothing, whatever it looks like.
#[test]
fn old_bytes() {
    let (node, mut connection) = prepared();
    let first = get("/ds1/");
    let again = connection.data(first.clone());
    let again = again.seq(connection.seq - first.len() as u32);
    let probe = connection.empty().payload("\0").seq(connection.seq - 1);
    let lookalike = connection.data(get("/ds2/"));
    let lookalike = lookalike.seq(connection.seq - first.len() as u32);
    for packet in [again, probe, lookalike] {
        node.run(&packet.frame()).expect(Tx, &forwarded(&packet));
        assert_eq!(u32::from(connection.entry(&node).state) & TCB_PINNED, 0);
    }
    let request = connection.data(get("/ds2/"));
    let counted = [("cs_handover", 1), ("cs_request", 1)];
    connection.send(&node, &request).expect(Tx, &counted);
}

/// The client waits for a response in between, so even its acknowledgement would not tell the body.
#[test]
fn a_body_that_looks_like_a_request() {
    let (node, mut connection) = prepared();
    let head =
        "POST /ds1/ HTTP/1.1\r\nHost: a\r\nContent-Length: 45\r\nExpect: 100-continue\r\n\r\n";
    let post = connection.data(head);
    let counted = forwarded_and("cs_pinned", &post);
    connection.send(&node, &post).expect(Tx, &counted);
    connection.ack += "HTTP/1.1 100 Continue\r\n\r\n".len() as u32;
    let body = connection.data(get("/ds2/"));
    connection.send(&node, &body).expect(Tx, &forwarded(&body));
    assert_eq!(connection.entry(&node).owner, 0);
}

/// A connection whose first request is for the first data server, with a body of so many bytes.
fn posting(node: &Node, bytes: usize) -> Connection {
    let head = format!("POST /ds1/ HTTP/1.1\r\nHost: a\r\nContent-Length: {bytes}\r\n\r\n");
    let connection = Connection::open(node, head);
    assert_eq!(connection.entry(node).owner, 0);
    connection
}

/// Whatever order its segments come in, and whatever is acknowledged meanwhile.
#[test]
fn behind_a_body_the_next_request_may_move() {
    let orders: [&[usize]; 4] = [&[0, 1, 2], &[0, 2, 1], &[2, 0, 2, 1, 1], &[1, 2, 0]];
    let part = get("/ds2/");
    for order in orders {
        let node = Node::cs();
        routes_by_name(&node);
        let mut connection = posting(&node, 3 * part.len());
        for index in order {
            let segment = connection.data(part.clone());
            let seq = connection.seq + (index * part.len()) as u32;
            let segment = segment.seq(seq);
            node.run(&segment.frame()).expect(Tx, BEHIND_ADOPT);
        }
        connection.seq += 3 * part.len() as u32;
        connection.ack += ANSWER;
        let next = connection.data(get("/ds2/"));
        let counted = [("cs_handover", 1), ("cs_request", 1)];
        connection.send(&node, &next).expect(Tx, &counted);
    }
}

/// Some of the body has not come, or more than it came, or its response has not.
#[test]
fn a_body_that_is_not_whole() {
    let part = get("/ds2/");
    let node = Node::cs();
    routes_by_name(&node);

    let connection = posting(&node, 2 * part.len());
    let behind = Connection {
        seq: connection.seq + 2 * part.len() as u32,
        ack: connection.ack + ANSWER,
        ..connection
    };
    pins(&node, behind, &behind.data(get("/ds2/")));

    let connection = posting(&node, part.len());
    let more = connection.data(part.clone() + "x");
    pins_and(&node, connection, &more, BEHIND_ADOPT);

    let mut connection = posting(&node, part.len());
    let body = connection.data(part);
    connection.send(&node, &body).expect(Tx, BEHIND_ADOPT);
    let next = connection.data(get("/ds2/"));
    pins_and(&node, connection, &next, BEHIND_ADOPT);
}

/// The client has said all: what else comes is not a request.
#[test]
fn data_behind_a_fin() {
    let (node, connection) = prepared();
    let fin = connection.empty().flags("FA");
    let counted = forwarded_and("cs_fin", &fin);
    node.run(&fin.frame()).expect(Tx, &counted);
    let behind = connection.data(get("/ds2/"));
    let seq = behind.seq + 1;
    pins(&node, connection, &behind.seq(seq));
}
