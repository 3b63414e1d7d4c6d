//! Bodies of more bytes than sequence numbers tell of, and heads behind which nobody knows what comes.

use std::time::Duration;

use baton_abi::{SERVICE_PUNTS, TCB_ADOPTING, TCB_PINNED};
use baton_dataplane::{Findings, Lead, Punts, RequestLength, Resumed};

use super::{HEAD, MOVED, begins, prepared};
use crate::{
    cluster::first_pool_of_one,
    cs::http::{ANSWER, Connection, get},
    lccp::sent,
    node::{Counted, Drop, Node, Tx},
    segment::Segment,
};

/// Between the beginnings of two packets: what is between is still to come.
const STEP: u64 = 60_000;
const GIB: u64 = 1 << 30;

fn put(path: &str, bytes: u64) -> String {
    format!("PUT {path} HTTP/1.1\r\n{HEAD}Content-Length: {bytes}\r\n\r\n")
}

fn forwards(node: &Node, packet: &Segment) {
    let seen = node.run(&packet.frame());
    let names: Vec<_> = seen.counted.keys().cloned().collect();
    assert_eq!(seen.verdict, Tx, "{names:?}");
    assert!(
        names.iter().all(|name| name.starts_with("cs_forward")),
        "{names:?}"
    );
}

/// Sends all but the last of so many bytes of data, which look like a request wherever a packet begins, with some of it
/// again. Then what goes on behind them is judged.
fn send_data(node: &Node, connection: &mut Connection, bytes: u64) {
    let request = get("/ds1/").into_bytes();
    let mut left = bytes;
    let mut number = 0;
    while left > STEP + request.len() as u64 {
        forwards(node, &connection.data(request.clone()));
        if number % 1000 == 7 {
            let before = Segment {
                seq: connection.seq.wrapping_sub(STEP as u32 * 5),
                ..connection.data(request.clone())
            };
            forwards(node, &before);
        }
        connection.seq = connection.seq.wrapping_add(STEP as u32);
        left -= STEP;
        number += 1;
    }
    while left > 1 {
        let here = (left - 1).min(1400);
        let packet = connection.data(vec![b'x'; here as usize]);
        forwards(node, &packet);
        connection.seq = connection.seq.wrapping_add(here as u32);
        left -= here;
    }
}

/// A request begins where all of the one before ends, and not a byte before.
fn goes_on_with(node: &Node, connection: &mut Connection, end: &str) {
    connection.ack += ANSWER;
    let packet = connection.data(format!("{end}{}", get("/ds1/")));
    let nobody: Counted<'_> = &[("cs_closed_behind", 1), ("cs_punt_stale", 1)];
    let copy = *connection;
    // Where the last piece is as short as that, it is known to end here only now, and what is behind that comes again.
    let mut entry = copy.entry(node);
    let mut seen = node.run(&packet.frame());
    if seen.counted.contains_key("cs_early") {
        entry = copy.entry(node);
        seen = node.run(&packet.frame());
    }
    seen.check(Tx, nobody).unwrap();
    let key = node.tcb_key(&copy.client);
    node.plane().set_tcb(&key, &entry).unwrap();

    let packet = connection.data(end);
    let seen = connection.send(node, &packet);
    assert_eq!(seen.verdict, Tx);
    let next = connection.data(get("/ds1/"));
    connection.send(node, &next).expect(Tx, MOVED);
}

#[test]
fn of_known_length() {
    for bytes in [GIB + 1, 3_300_000_000] {
        let node = prepared();
        let mut connection = Connection::answered(&node);
        let head = connection.data(put("/ds2/", bytes));
        connection.send(&node, &head).expect(Tx, MOVED);
        // Its server has begun to answer, or what follows would go behind the handover.
        connection.ack += 25;
        let empty = connection.empty();
        forwards(&node, &empty);
        send_data(&node, &mut connection, bytes);
        assert_eq!(u32::from(connection.entry(&node).state) & TCB_PINNED, 0);
        goes_on_with(&node, &mut connection, "x");
    }
}

/// A body goes by its handover's way at first, and then straight to who has it, although that has answered nothing yet. Once
/// the client has sent more than its window allows to one that hears nothing, the request counts as come: what is 4 GB
/// behind its first byte has the same number, and is no request that is sent again.
#[test]
fn of_a_request_that_was_handed_over() {
    const FLIGHT: u64 = 4 << 20;
    let node = prepared();
    let mut connection = Connection::answered(&node);
    let head = connection.data(put("/ds2/", 5 * GIB));
    connection.send(&node, &head).expect(Tx, MOVED);
    let body = |into: u64| Segment {
        seq: head.seq.wrapping_add(into as u32),
        ..connection.data("of the body")
    };
    let is_adopting = || u32::from(connection.entry(&node).state) & TCB_ADOPTING != 0;
    for into in (STEP..FLIGHT).step_by(STEP as usize) {
        let seen = node.run(&body(into).frame());
        seen.expect(Tx, &[("cs_queued", 1)]);
    }
    for into in (FLIGHT..4 * GIB).step_by(STEP as usize) {
        forwards(&node, &body(into));
        assert_eq!(is_adopting(), into < GIB, "{into}");
    }
    forwards(&node, &body(4 * GIB));
}

#[test]
fn in_a_chunk() {
    for bytes in [GIB, 0xffff_fff0] {
        let node = prepared();
        let mut connection = Connection::answered(&node);
        let head =
            format!("PUT /ds2/ HTTP/1.1\r\n{HEAD}Transfer-Encoding: chunked\r\n\r\n{bytes:x}\r\n");
        let head = connection.data(head);
        connection.send(&node, &head).expect(Tx, MOVED);
        connection.ack += 25;
        forwards(&node, &connection.empty());
        send_data(&node, &mut connection, bytes);
        goes_on_with(&node, &mut connection, "x\r\n0\r\n\r\n");
    }
}

/// Sends a head in two packets, which user space reads, and says how the request goes on.
fn in_two_packets(node: &Node, head: &str, length: RequestLength) -> (Punts, Connection) {
    node.change_flags(|flags| flags | SERVICE_PUNTS);
    let punts = node.plane().punts().unwrap();
    punts.give_sign(Duration::from_secs(3600)).unwrap();
    let mut connection = Connection::answered(node);
    let (first, second) = head.split_at(30);
    let first = connection.data(first);
    let punted: Counted<'_> = &[("cs_punted", 1), ("cs_target", 1)];
    connection.send(node, &first).expect(Drop, punted);
    let second = connection.data(second);
    let behind: Counted<'_> = &[("cs_punted_behind", 1)];
    connection.send(node, &second).expect(Drop, behind);
    let read: Vec<_> = punts.wait(Duration::from_secs(5)).unwrap().collect();
    let lead = Lead {
        pool: first_pool_of_one() + 1,
        route: 100,
        resumes: false,
    };
    let findings = Findings {
        length: Some(length),
        ..Findings::default()
    };
    let resumed = punts.resume_by(&read[0], Some(lead), None, findings);
    assert!(matches!(resumed, Ok(Resumed::Leaves(_))), "{resumed:?}");
    let resumed = punts.follow(&read[1]);
    assert!(matches!(resumed, Ok(Resumed::Leaves(_))), "{resumed:?}");
    let entry = connection.entry(node);
    assert_eq!((entry.owner, u32::from(entry.state) & TCB_PINNED), (1, 0));
    node.look();
    connection.ack += 25;
    forwards(node, &connection.empty());
    (punts, connection)
}

#[test]
fn behind_a_head_in_parts() {
    let node = prepared();
    let (bytes, text) = (3 * GIB, put("/ds2/", 3 * GIB));
    let head = text.len() as u32;
    let length = RequestLength::Bytes { head, body: bytes };
    let (punts, mut connection) = in_two_packets(&node, &text, length);
    punts.withdraw().unwrap();
    send_data(&node, &mut connection, bytes);
    goes_on_with(&node, &mut connection, "x");
}

/// Of a WebSocket, or of whoever says its length twice, the owner tells what it is.
#[test]
fn what_nobody_can_say() {
    let node = prepared();
    let text = format!("GET /ds2/ HTTP/1.1\r\n{HEAD}Upgrade: websocket\r\n\r\n");
    let length = RequestLength::Endless(text.len() as u32);
    let (_punts, connection) = in_two_packets(&node, &text, length);
    // Some of the head again is for user space, which knows it.
    let inside = Segment {
        seq: connection.seq.wrapping_sub(1),
        ..connection.data("x")
    };
    node.run(&inside.frame())
        .expect(Drop, &[("cs_punted_behind", 1)]);
    let data = connection.data(get("/ds1/"));
    for counted in [
        &[("cs_begins", 1), ("cs_pinned", 1)][..],
        &[("cs_begins", 1)],
    ] {
        let seen = node.run(&data.frame()).expect(Tx, counted);
        assert_eq!(sent(&node, &seen).message, begins(&connection.client));
    }
}
