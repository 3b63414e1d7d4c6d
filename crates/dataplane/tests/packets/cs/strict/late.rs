//! What comes late: packets with an old acknowledgement, answers that were true once, and parts of a head that comes again.

use super::super::claim::moved;
use baton_abi::Tcb;
use baton_dataplane::{Punt, Tick, tick_ago};

use super::*;
use crate::{lccp::opened, read::Packet};

fn none(node: &Node, from: u16, packet: &Segment, client: &Client) -> Vec<u8> {
    let message = Message::None {
        flow: flow(client),
        attempt: 0,
        is_plain: false,
    };
    to_cs(from, &message, node.now(), &key().lccp(), &packet.packet())
}

fn missing(node: &Node, from: u16, packet: &Segment, client: &Client, at: u32) -> Vec<u8> {
    let message = Message::Begun {
        flow: flow(client),
        keep: Keep::Missing,
        at,
        responses: RESPONSES,
    };
    to_cs(from, &message, node.now(), &key().lccp(), &packet.packet())
}

/// The network has held the request up, and its client has acknowledged the rest of the response before meanwhile.
#[test]
fn an_old_acknowledgement_is_renewed() {
    let node = prepared();
    let mut connection = Connection::answered(&node);
    let request = connection.data(get("/ds2/"));
    connection.ack += 500;
    let ack = connection.empty();
    node.run(&ack.frame()).expect(Tx, &forwarded(&ack));
    let counted: Counted<'_> = &[("cs_handover", 1), ("cs_renewed", 1), ("cs_request", 1)];
    let seen = node.run(&request.frame()).expect(Tx, counted);
    let sent = sent(&node, &seen);
    assert_eq!(sent.message, elsewhere(&connection.client, 1));
    let expected = Segment {
        ack: connection.ack,
        ..request
    };
    // The same bytes that the client would have sent, and so the right checksum.
    assert_eq!(sent.packet, expected.packet());
}

/// While a connection is on its way, only the request itself comes back because of who has not got it.
#[test]
fn what_finds_nothing_on_the_way() {
    let node = prepared();
    let (connection, request) = Connection::handed_over(&node);
    let before = connection.entry(&node);
    let ack = Segment {
        seq: request.seq,
        ..connection.empty()
    };
    let body = Segment {
        seq: connection.seq,
        ..request.clone()
    };
    for from in [0, 1] {
        for packet in [&ack, &body] {
            node.run(&none(&node, from, packet, &connection.client))
                .expect(Drop, &[("lccp_mismatch", 1)]);
            connection.is_unchanged(&node, &before);
        }
    }
    // Who was to hand it over never had it.
    node.run(&none(&node, 0, &request, &connection.client))
        .expect(Drop, &[("cs_none", 1)]);
    assert_eq!(node.tcb(&connection.client), None);
}

/// The request was on its way behind the question whether its owner had it. Its client has the answer, and goes on.
#[test]
fn what_was_missing_and_has_come() {
    let node = prepared();
    let mut connection = Connection::answered(&node);
    let request = connection.data(get("/ds1/"));
    connection.send(&node, &request);
    let answer = missing(&node, 0, &request, &connection.client, request.seq);
    node.run(&answer).expect(Drop, &[("cs_missing", 1)]);
    connection.ack += ANSWER;
    let next = connection.data(get("/ds2/"));
    let counted: Counted<'_> = &[("cs_begins", 1), ("cs_pinned", 1)];
    let seen = node.run(&next.frame()).expect(Tx, counted);
    assert_eq!(sent(&node, &seen).message, begins(&connection.client));
    let answer = begun(&node, &next, &connection.client, Keep::Begins);
    let seen = node.run(&answer).expect(Tx, UNPINNED_AND_MOVED);
    let expected = elsewhere_after(&connection.client, 1, RESPONSES);
    assert_eq!(without_end(sent(&node, &seen).message), expected);
}

/// What has come back by a data server can be answered to nobody: its client sends it again.
#[test]
fn what_was_carried_is_forwarded_or_dropped() {
    let node = prepared();
    let asked = |path: &str| {
        let mut connection = Connection::answered(&node);
        let request = connection.data(get(path));
        connection.send(&node, &request);
        let missing = missing(&node, 0, &request, &connection.client, request.seq);
        node.run(&missing).expect(Drop, &[("cs_missing", 1)]);
        let next = connection.data(get("/ds2/"));
        node.run(&next.frame())
            .check(Tx, &[("cs_begins", 1), ("cs_pinned", 1)])
            .unwrap();
        (
            begun(&node, &next, &connection.client, Keep::Begins),
            next,
            connection,
        )
    };
    node.change_flags(|flags| flags & !SERVICE_HANDOVER);
    let (answer, next, connection) = asked("/ds1/");
    let closed = [("cs_closed_unmoved", 1), ("cs_request", 1)];
    node.run(&answer)
        .expect(Drop, &[&closed[..], &[("cs_unpinned", 1)]].concat());
    assert!(node.tcb(&connection.client).is_some());
    // As ever, when it comes by itself.
    node.run(&next.frame()).expect(Tx, &closed);
    assert_eq!(node.tcb(&connection.client), None);

    // Of a claimed connection the first request has come back, too, and was delivered nowhere.
    let client = Client::of(HTTP);
    let packet = client.later(7, 500, 9000).flags("PA").payload(get("/ds1/"));
    node.run(&packet.frame()).expect(Tx, &[("cs_claim", 1)]);
    let counted: Counted<'_> = &[("cs_begins", 1), ("cs_moved", 1)];
    let seen = node
        .run(&moved(&node, 1, &packet, linux_tcb()))
        .expect(Tx, counted);
    let asked = sent(&node, &seen);
    assert_eq!((asked.to, asked.message), (ds(1), begins(&client)));
    assert_eq!(asked.packet, packet.packet());
}

/// User space may have it all the same, and divides it.
#[test]
fn what_was_carried_is_divided() {
    let node = prepared();
    node.change_flags(|flags| flags | SERVICE_PUNTS);
    let punts = node.plane().punts().unwrap();
    punts.give_sign(Duration::from_secs(3600)).unwrap();
    let connection = Connection::answered(&node);
    let both = format!("{}{}", get("/ds2/"), get("/ds1/"));
    let far = connection
        .data(both)
        .seq(connection.seq.wrapping_add(1 << 20));
    node.run(&far.frame())
        .expect(Tx, &[("cs_begins", 1), ("cs_jump", 1)]);
    let answer = begun(&node, &far, &connection.client, Keep::Begins);
    let divided: Counted<'_> = &[
        ("cs_divided", 1),
        ("cs_jumped", 1),
        ("cs_pinned", 1),
        ("cs_unpinned", 1),
    ];
    node.run(&answer).expect(Drop, divided);
    let read: Vec<_> = punts.wait(Duration::from_secs(5)).unwrap().collect();
    assert_eq!(read.len(), 1);
    assert!(read[0].is_carried);
    let at = read[0].divide_at.map(|at| usize::from(at.get()));
    assert_eq!(at, Some(get("/ds2/").len()));
    assert_eq!(read[0].frame[14..], far.packet());

    let first = Punt {
        divide_at: None,
        frame: far.clone().payload(get("/ds2/")).frame(),
        ..read[0].clone()
    };
    let Resumed::Leaves(frame) = punts.let_go(&first).unwrap() else {
        panic!("it is another data server's");
    };
    let message = opened(&node, &Packet::read(&frame).unwrap()).message;
    let expected = elsewhere_after(&connection.client, 1, RESPONSES);
    assert_eq!(without_end(message), expected);
}

/// A request behind it has made a handover meanwhile, and the one that is to hand over says so.
#[test]
fn what_is_missing_before_a_request_that_moves() {
    let node = prepared();
    let (connection, request) = Connection::handed_over(&node);
    let before = connection.entry(&node);
    // It had all before the request when it was asked, and may hand that over now.
    let answer = missing(&node, 0, &request, &connection.client, request.seq);
    node.run(&answer).expect(Drop, &[("cs_missing", 1)]);
    connection.is_unchanged(&node, &before);
    let at = request.seq.wrapping_sub(5);
    let answer = || missing(&node, 0, &request, &connection.client, at);
    node.run(&answer()).expect(Drop, &[("cs_missing", 1)]);
    // That the request is withheld, and comes again, brings nothing back.
    let back = withheld(&node, 0, &request, &connection.client, Keep::Sequence);
    node.run(&back).expect(Drop, WITHHELD);
    node.run(&request.frame()).expect(Tx, MOVED);
    node.run(&answer()).expect(Drop, &[("cs_missing", 1)]);
    node.run(&answer())
        .expect(Pass, &[("cs_closed_changed", 1)]);
    assert_eq!(node.tcb(&connection.client), None);
}

/// Of a head in several packets: user space knows what it has read.
#[test]
fn a_part_of_a_head_comes_again() {
    let node = prepared();
    node.change_flags(|flags| flags | SERVICE_PUNTS);
    let punts = node.plane().punts().unwrap();
    punts.give_sign(Duration::from_secs(3600)).unwrap();
    let mut connection = Connection::answered(&node);
    let text = get("/ds2/");
    let first = connection.data(&text[..10]);
    connection.send(&node, &first);
    let second = connection.data(&text[10..]);
    connection.send(&node, &second);
    let shown: Vec<_> = punts.wait(Duration::from_secs(5)).unwrap().collect();
    let behind: Vec<_> = shown.iter().map(|punt| punt.is_behind).collect();
    assert_eq!(behind, [false, true]);
    let lead = Some(Lead {
        pool: first_pool_of_one() + 1,
        route: 100,
        resumes: false,
    });
    let head = text.len() as u32;
    let findings = Findings {
        length: Some(RequestLength::Bytes { head, body: 0 }),
        ..Findings::default()
    };
    punts.resume_by(&shown[0], lead, None, findings).unwrap();
    punts.follow(&shown[1]).unwrap();
    node.look();
    for (part, frame) in [(&first, &shown[0]), (&second, &shown[1])] {
        node.run(&part.frame())
            .expect(Drop, &[("cs_punted_behind", 1)]);
        let again: Vec<_> = punts.wait(Duration::from_secs(5)).unwrap().collect();
        assert!(again.len() == 1 && again[0].is_behind, "{again:?}");
        // Nobody knows it: it goes nowhere while the connection is on its way.
        let resumed = punts.follow(&again[0]).unwrap();
        assert!(matches!(resumed, Resumed::Dropped), "{resumed:?}");
        assert_eq!(node.moved().get("cs_again_later"), Some(&1));
        // What user space has kept is as it was.
        let Resumed::Leaves(sent) = punts.repeat(frame).unwrap() else {
            panic!("it goes nowhere");
        };
        assert!(Packet::read(&sent).unwrap().body.ends_with(&part.payload));
        node.look();
    }
}

/// Somebody who knows neither number of the connection reaches nothing that user space has of it.
#[test]
fn user_space_sees_no_forged_packets_of_a_connection() {
    let node = prepared();
    node.change_flags(|flags| flags | SERVICE_PUNTS);
    let punts = node.plane().punts().unwrap();
    punts.give_sign(Duration::from_secs(3600)).unwrap();
    let mut connection = Connection::answered(&node);
    let first = connection.data("GET /ds2/ HT");
    connection.send(&node, &first);
    assert_eq!(punts.wait(Duration::from_secs(5)).unwrap().count(), 1);
    for flags in ["FA", "PA"] {
        let forged = Segment {
            seq: first.seq.wrapping_add(1 << 30),
            ack: first.ack.wrapping_add(1 << 30),
            payload: if flags == "PA" {
                b"GET /".to_vec()
            } else {
                Vec::new()
            },
            ..first.clone()
        };
        node.run(&forged.flags(flags).frame());
        assert_eq!(punts.wait(Duration::ZERO).unwrap().count(), 0, "{flags}");
    }
}

/// What is before it does not come here: it went by another connection server, or is lost with a daemon that had acknowledged
/// it. The owner knows.
#[test]
fn what_follows_a_lost_beginning_is_for_the_owner_to_judge() {
    for (keep, counted) in [
        (Keep::Begins, "cs_unpinned"),
        (Keep::Unknown, "cs_closed_lost"),
    ] {
        let (node, connection, rest) = without_its_beginning();
        let seen = node.run(&rest.frame());
        let seen = seen.expect(Tx, &[("cs_begins", 1), ("cs_pinned", 1)]);
        assert_eq!(sent(&node, &seen).message, begins(&connection.client));
        let answer = begun(&node, &rest, &connection.client, keep);
        let seen = node.run(&answer);
        assert_eq!(seen.counted.get(counted), Some(&1), "{seen:?}");
        let ends = keep == Keep::Unknown;
        assert_eq!(node.tcb(&connection.client).is_none(), ends);
    }
}

/// A packet that has waited for longer than what comes out of its order.
fn without_its_beginning() -> (Node, Connection, Segment) {
    let node = prepared();
    let connection = Connection::answered(&node);
    let client = &connection.client;
    let rest = Segment {
        seq: connection.seq + 700,
        ..connection.data("Cookie: a=b\r\n\r\n")
    };
    let early: Counted<'_> = &[("cs_early", 1)];
    let key = node.tcb_key(client);
    let is_heard = |ago: u64| {
        let Tick(seen) = tick_ago(Duration::from_secs(ago));
        let entry = Tcb {
            seen,
            ..node.tcb(client).unwrap()
        };
        node.plane().set_tcb(&key, &entry).unwrap();
    };
    // However long the connection was idle before.
    is_heard(60);
    node.run(&rest.frame()).expect(Drop, early);
    is_heard(0);
    node.run(&rest.frame()).expect(Drop, early);
    is_heard(10);
    (node, connection, rest)
}

/// It was only late.
#[test]
fn what_follows_a_late_beginning_goes_on() {
    let node = prepared();
    let mut connection = Connection::answered(&node);
    let first = connection.data(get("/ds1/a"));
    let second = Segment {
        seq: first.seq + first.payload.len() as u32,
        ..connection.data(get("/ds1/b"))
    };
    // The first one acknowledges the response before.
    for _ in 0..2 {
        node.run(&second.frame()).expect(Drop, &[("cs_early", 1)]);
    }
    assert_eq!(connection.entry(&node).missing, 1);
    connection.send(&node, &first);
    assert_eq!(connection.entry(&node).missing, 0);
}
