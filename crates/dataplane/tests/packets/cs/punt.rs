//! Punts: requests that user space judges, on their way there, with a verdict on their way back, and what
//! happens when nobody is there to judge.

use std::{cell::Cell, time::Duration};

use baton_abi::{
    NO_POOL, ROUTE_PUNTS, ROUTE_WAITS, SERVICE_PUNTS, TCB_ADOPTING, TCB_PINNED, TCB_PUNTED,
    TCB_WAITING, VERDICT_MARK, Verdict,
};
use baton_dataplane::{Lead, Punt, Punts, Resumed};
use libbpf_rs::RingBufferBuilder;

use super::{
    hold,
    http::{ANSWER, Connection, ROUTE, forwarded, forwarded_and, get, route, to},
};
use crate::{
    blank::map_named,
    cluster::{ARRIVES_AT, HTTP, HTTP_SERVICE, first_pool_of_one},
    node::{Drop, Node, Tx},
    read::Packet,
    segment::{Client, Segment},
};

/// Of requests that no route takes.
const REST: u16 = HTTP_SERVICE;
const A: u16 = first_pool_of_one();
const B: u16 = A + 1;
const LONG: Duration = Duration::from_secs(3600);

/// A connection server whose `/asked/` is user space's to judge, and its own pool A's if nobody does, and
/// `/open/` likewise, but the service's own; what asks for `/closed/` waits then. The reader has given a sign.
fn node() -> (Node, Punts) {
    let node = Node::fresh_cs();
    let routes = [
        (route(0, "/a/"), A.into()),
        (route(0, "/b/"), B.into()),
        (route(0, "/asked/"), u32::from(A) | ROUTE_PUNTS),
        (route(0, "/open/"), NO_POOL | ROUTE_PUNTS),
        (
            route(0, "/closed/"),
            u32::from(B) | ROUTE_PUNTS | ROUTE_WAITS,
        ),
    ];
    node.plane().set_routes(&routes).unwrap();
    node.change_flags(|flags| flags | SERVICE_PUNTS);
    let punts = node.plane().punts().unwrap();
    punts.give_sign(LONG).unwrap();
    (node, punts)
}

fn read(punts: &Punts) -> Vec<Punt> {
    punts.wait(Duration::ZERO).unwrap().collect()
}

/// The only one there is.
#[track_caller]
fn read_one(punts: &Punts) -> Punt {
    let mut all = read(punts);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

/// A client that has its cookie, and its first packet.
fn first(node: &Node, request: impl Into<Vec<u8>>) -> (Client, Segment) {
    let client = Client::of(HTTP);
    let cookie = node.cookie(&client);
    (client, client.get(cookie).payload(request))
}

/// Goes on where that ends.
fn behind_all_of(head: &Segment) -> Segment {
    Segment {
        seq: head.seq.wrapping_add(head.payload.len() as u32),
        ..head.clone()
    }
}

#[track_caller]
fn leaves(resumed: Resumed) -> Packet {
    let Resumed::Leaves(frame) = resumed else {
        panic!("{resumed:?}");
    };
    crate::read::verify_checksums(&frame).unwrap();
    Packet::read(&frame).unwrap()
}

/// Nothing but the ring has changed, and the frame in it is the one that came, without its padding.
#[test]
fn a_first_request_is_handed_over_as_it_is() {
    let (node, punts) = node();
    let (client, segment) = first(&node, get("/asked/x"));
    let padded = [segment.frame(), vec![0; 20]].concat();
    node.run(&padded).expect(Drop, &[("cs_punted", 1)]);
    assert_eq!(node.tcb(&client), None);
    let expected = Punt {
        divide_at: None,
        is_behind: false,
        is_repeat: false,
        is_carried: false,
        interface: ARRIVES_AT,
        service: HTTP_SERVICE,
        key: None,
        frame: segment.frame(),
    };
    // A test run without a context arrives at the loopback.
    assert_eq!(read_one(&punts), expected);
}

/// What is not surely one request is judged as well, when it is the first.
#[test]
fn any_first_request_that_such_a_route_fits() {
    let (node, punts) = node();
    let long = format!("/asked/{}", "x".repeat(400));
    for (request, pinned) in [
        (get("/asked/"), false),
        (get("/open/"), false),
        (get(&long), false),
        (
            "POST /asked/ HTTP/1.1\r\nContent-Length: 9\r\n\r\n".into(),
            false,
        ),
        (
            "GET /asked/?and/so/on HTTP/1.1\r\nHost: a\r\nCookie: a=".into(),
            true,
        ),
    ] {
        let (client, segment) = first(&node, request.as_str());
        node.run(&segment.frame()).expect(Drop, &[("cs_punted", 1)]);
        let resumed = punts.resume(&read_one(&punts), to(B), None).unwrap();
        leaves(resumed);
        let entry = node.tcb(&client).unwrap();
        let state = TCB_ADOPTING | TCB_WAITING | if pinned { TCB_PINNED } else { 0 };
        assert_eq!(
            (entry.pool, u32::from(entry.state)),
            (B, state),
            "{request}"
        );
    }
}

#[test]
fn others_are_not() {
    let (node, punts) = node();
    for (target, pool) in [("/", REST), ("/a/", A), ("/b/asked/", B), ("/aske", REST)] {
        let connection = Connection::open(&node, get(target));
        assert_eq!(connection.entry(&node).pool, pool, "{target}");
    }
    assert_eq!(read(&punts), []);
}

/// The verdict is followed, whatever the table of routes says, and all that is counted is counted once.
#[test]
fn a_verdict_is_followed() {
    let (node, punts) = node();
    for (target, verdict, pool) in [
        ("/asked/", Some(B), B),
        ("/asked/", Some(A), A),
        ("/asked/", None, REST),
        ("/open/", Some(B), B),
        ("/open/", None, REST),
    ] {
        let (client, segment) = first(&node, get(target));
        node.run(&segment.frame());
        let punt = read_one(&punts);
        node.look();
        let packet = leaves(punts.resume(&punt, verdict.and_then(to), None).unwrap());
        let moved = node.moved();
        let names: Vec<_> = moved
            .iter()
            .map(|(name, by)| (name.as_str(), *by))
            .collect();
        assert_eq!(names, [("cs_adopt", 1), ("cs_punt_decided", 1)], "{target}");
        assert!(packet.body.ends_with(&segment.packet()));
        let entry = node.tcb(&client).unwrap();
        let route = verdict.map_or(HTTP_SERVICE, |_| ROUTE);
        assert_eq!((entry.pool, entry.route), (pool, route), "{target}");
    }
}

/// Of several routes of one host and path each can have its own word.
#[test]
fn a_verdict_says_whether_the_request_is_kept() {
    let (node, punts) = node();
    let orphans = node.plane().orphans().unwrap();
    for resumes in [false, true] {
        let (client, segment) = first(&node, get("/asked/"));
        node.run(&segment.frame());
        let lead = to(B).map(|lead| Lead { resumes, ..lead });
        leaves(punts.resume(&read_one(&punts), lead, None).unwrap());
        let entry = node.tcb(&client).unwrap();
        assert_eq!((entry.pool, entry.route), (B, ROUTE));
        let kept = orphans.kept(&node.tcb_key(&client)).unwrap();
        assert_eq!(kept.is_some(), resumes);
    }
}

/// A frame that nobody put a verdict in front of: other metadata, or a mark that is not one.
#[test]
fn other_metadata_is_no_verdict() {
    let (node, punts) = node();
    let programs = node.plane().programs();
    for mark in [0, VERDICT_MARK + 1] {
        let (client, segment) = first(&node, get("/asked/"));
        let metadata = Verdict {
            mark,
            pool: B,
            ..Verdict::default()
        };
        let outcome = baton_dataplane::sys::run_on_arrival(
            std::os::fd::AsFd::as_fd(programs.cs.as_ref().unwrap()),
            zerocopy::IntoBytes::as_bytes(&metadata),
            &segment.frame(),
            ARRIVES_AT,
        );
        assert_eq!(outcome.unwrap().verdict, 1);
        assert_eq!(node.tcb(&client), None);
        assert_eq!(read_one(&punts).frame, segment.frame());
    }
}

/// A client that sends its request again while it is being judged, and after.
#[test]
fn a_request_sent_again() {
    let (node, punts) = node();
    let (client, segment) = first(&node, get("/asked/"));
    for _ in 0..2 {
        node.run(&segment.frame()).expect(Drop, &[("cs_punted", 1)]);
    }
    let both = read(&punts);
    leaves(punts.resume(&both[0], to(B), None).unwrap());
    node.run(&segment.frame())
        .expect(Tx, &[("cs_adopt_again", 1)]);
    node.look();
    leaves(punts.resume(&both[1], to(A), None).unwrap());
    assert_eq!(node.moved().keys().collect::<Vec<_>>(), ["cs_adopt_again"]);
    assert_eq!(node.tcb(&client).unwrap().pool, B);
    assert_eq!(read(&punts), []);
}

/// The rest of a first request comes while its beginning is being judged: it stays behind it.
#[test]
fn what_follows_a_first_request() {
    let (node, punts) = node();
    let (client, head) = first(&node, "POST /asked/ HTTP/1.1\r\nContent-Length: 4\r\n\r\n");
    let after = head.seq.wrapping_add(head.payload.len() as u32);
    let body = Segment {
        seq: after,
        ..head.clone()
    }
    .payload("body");
    let fin = Segment {
        seq: after + 4,
        ..head.clone()
    }
    .payload("")
    .flags("FA");
    node.run(&head.frame()).expect(Drop, &[("cs_punted", 1)]);
    for behind in [&body, &fin] {
        node.run(&behind.frame())
            .expect(Drop, &[("cs_punted_behind", 1)]);
    }
    let waiting = read(&punts);
    let frames: Vec<_> = waiting.iter().map(|punt| punt.frame.clone()).collect();
    assert_eq!(frames, [head.frame(), body.frame(), fin.frame()]);
    for punt in &waiting {
        leaves(punts.resume(punt, to(B), None).unwrap());
    }
    let entry = node.tcb(&client).unwrap();
    assert_eq!((entry.pool, entry.last_seq), (B, after + 4));
    // From here on everything goes its ordinary way.
    let more = Segment {
        seq: after + 5,
        ..head
    }
    .payload("")
    .flags("A");
    node.run(&more.frame()).expect(Tx, &forwarded(&more));
}

/// More of a first request that was punted, or that waits to be, while nobody can be asked: no other node is, for none has it,
/// and its client would be reset. So it is until the client has sent its beginning again.
#[test]
fn what_follows_a_first_request_while_nobody_judges() {
    for is_here in [true, false] {
        let (node, punts) = node();
        if !is_here {
            punts.withdraw().unwrap();
        }
        let (client, head) = first(&node, "POST /closed/ HTTP/1.1\r\nContent-Length: 4\r\n\r\n");
        let rest = behind_all_of(&head).payload("body");
        let punted = [("cs_punted", 1)];
        let waits = [("cs_punt_stale", 1), ("cs_punt_waits", 1)];
        let expected = if is_here { &punted[..] } else { &waits };
        node.run(&head.frame()).expect(Drop, expected);
        punts.withdraw().unwrap();
        for _ in 0..3 {
            node.run(&rest.frame())
                .expect(Drop, &[("cs_punt_stale", 1)]);
        }
        punts.give_sign(LONG).unwrap();
        node.run(&rest.frame())
            .expect(Drop, &[("cs_punted_behind", 1)]);
        // Nothing was judged that it could be behind.
        let behind = read(&punts).pop().unwrap();
        assert_eq!(punts.follow(&behind).unwrap(), Resumed::Dropped);
        node.run(&head.frame()).expect(Drop, &punted);
        leaves(punts.resume(&read_one(&punts), to(B), None).unwrap());
        assert_eq!(node.tcb(&client).unwrap().pool, B);
        node.run(&rest.frame())
            .expect(Tx, &[("cs_behind_adopt", 1)]);
        // Once its client has an answer, whoever lost sight of the connection looks for it.
        node.forget(&client);
        let next = Segment {
            ack: rest.ack.wrapping_add(ANSWER),
            ..rest
        };
        node.run(&next.frame()).expect(Tx, &[("cs_claim", 1)]);
    }
}

/// The ports had another connection before, whose entry is still there: it does not say where this goes.
#[test]
fn what_follows_a_first_request_on_used_ports() {
    let (node, punts) = node();
    let old = Connection::open(&node, get("/a/"));
    let new = old.client.again();
    let post = "POST /asked/ HTTP/1.1\r\nContent-Length: 4\r\n\r\n";
    let head = new.get(node.cookie(&new)).payload(post);
    let body = behind_all_of(&head).payload("body");
    let before = old.entry(&node);
    node.run(&head.frame()).expect(Drop, &[("cs_punted", 1)]);
    node.run(&body.frame())
        .expect(Drop, &[("cs_punted_behind", 1)]);
    old.is_unchanged(&node, &before);
    for punt in read(&punts) {
        leaves(punts.resume(&punt, to(B), None).unwrap());
    }
    let entry = node.tcb(&new).unwrap();
    assert_eq!((entry.pool, entry.request_seq), (B, head.seq));
}

/// Another connection server is about to take over: what was judged meanwhile waits for that, and what is behind it, too,
/// of which its client may have been told that it has come.
#[test]
fn what_follows_a_first_request_that_waits_for_a_takeover() {
    let (node, punts) = node();
    let (client, head) = first(&node, "POST /asked/ HTTP/1.1\r\nContent-Length: 4\r\n\r\n");
    let rest = behind_all_of(&head).payload("body");
    node.run(&head.frame());
    node.run(&rest.frame());
    let [first, behind] = &read(&punts)[..] else {
        panic!("two frames");
    };
    let hold = node.plane().hold().unwrap();
    hold.begin(LONG).unwrap();
    node.look();
    assert_eq!(punts.resume(first, to(B), None).unwrap(), Resumed::Dropped);
    assert_eq!(punts.follow(behind).unwrap(), Resumed::Dropped);
    assert_eq!(node.moved().get("cs_held"), Some(&2));
    let went = hold.pass_on(&hold::other(), LONG).unwrap();
    assert_eq!(went, [hold::leaves(&head), hold::leaves(&rest)]);
    assert_eq!(node.tcb(&client), None);
}

/// Who had it shown has ended, and its beginning has ended with it.
#[test]
fn what_follows_a_first_request_whose_judge_is_gone() {
    let (node, punts) = node();
    let (_, head) = first(&node, "POST /closed/ HTTP/1.1\r\nContent-Length: 4\r\n\r\n");
    let rest = behind_all_of(&head).payload("body");
    node.run(&head.frame()).expect(Drop, &[("cs_punted", 1)]);
    node.run(&rest.frame())
        .expect(Drop, &[("cs_punted_behind", 1)]);
    punts.forget_flows().unwrap();
    node.run(&rest.frame()).expect(Tx, &[("cs_claim", 1)]);
    punts.forget_flows().unwrap();
}

/// Without its beginning, which is lost, the rest is a stray as ever.
#[test]
fn what_follows_nothing() {
    let (node, punts) = node();
    let (_, head) = first(&node, get("/asked/"));
    let rest = Segment {
        seq: head.seq + 100,
        ..head
    }
    .payload("rest");
    node.run(&rest.frame()).expect(Tx, &[("cs_claim", 1)]);
    // Nor does a frame that has been to user space go there again.
    let punt = Punt {
        divide_at: None,
        is_behind: false,
        is_repeat: false,
        is_carried: false,
        interface: ARRIVES_AT,
        service: HTTP_SERVICE,
        key: None,
        frame: rest.frame(),
    };
    assert_eq!(punts.resume(&punt, to(B), None).unwrap(), Resumed::Dropped);
    assert_eq!(read(&punts), []);
}

/// A further request: the entry says that user space has it, and nothing else of it changes.
#[test]
fn a_further_request() {
    let (node, punts) = node();
    let mut connection = Connection::open(&node, get("/a/"));
    connection.ack += ANSWER;
    let before = connection.entry(&node);
    let request = connection.data(get("/asked/"));
    let seen = connection.send(&node, &request);
    seen.expect(Drop, &[("cs_punted", 1)]);
    let asked = connection.entry(&node);
    assert_eq!(u32::from(asked.state), u32::from(before.state) | TCB_PUNTED);
    assert_eq!(
        baton_abi::Tcb {
            state: before.state,
            ..asked
        },
        before
    );
    let punt = read_one(&punts);
    assert_eq!(
        (punt.service, &punt.frame),
        (HTTP_SERVICE, &request.frame())
    );
    // The client's acknowledgement, or its FIN, would be taken for more than the request.
    let fin = connection.empty().flags("FA");
    node.run(&fin.frame())
        .expect(Drop, &[("cs_punted_behind", 1)]);
    let behind = read_one(&punts);

    node.look();
    leaves(punts.resume(&punt, to(B), None).unwrap());
    let moved: Vec<_> = node.moved().into_keys().collect();
    assert_eq!(moved, ["cs_handover", "cs_punt_decided", "cs_request"]);
    let entry = connection.entry(&node);
    assert_eq!((entry.pool, entry.owner, entry.previous), (B, 1, 0));
    assert_eq!(u32::from(entry.state), TCB_ADOPTING | TCB_WAITING);
    node.look();
    leaves(punts.resume(&behind, to(B), None).unwrap());
    let moved: Vec<_> = node.moved().into_keys().collect();
    assert_eq!(moved, ["cs_fin", "cs_queued"]);
}

/// Nobody gives a sign of life: host and path decide, at once, if the route allows it.
#[test]
fn nobody_judges() {
    let (node, punts) = node();
    let late = || punts.give_sign(Duration::ZERO).unwrap();
    for silence in [&late as &dyn Fn(), &|| punts.withdraw().unwrap()] {
        punts.give_sign(LONG).unwrap();
        let mut connection = Connection::open(&node, get("/a/"));
        connection.ack += ANSWER;
        let mut other = Connection::open(&node, get("/a/"));
        other.ack += ANSWER;
        let asked = connection.data(get("/asked/"));
        connection
            .send(&node, &asked)
            .expect(Drop, &[("cs_punted", 1)]);
        silence();
        for (target, pool) in [("/asked/", A), ("/open/", REST)] {
            let (client, segment) = first(&node, get(target));
            let stale = [("cs_adopt", 1), ("cs_punt_stale", 1)];
            node.run(&segment.frame()).expect(Tx, &stale);
            assert_eq!(node.tcb(&client).unwrap().pool, pool, "{target}");
        }
        let (client, segment) = first(&node, get("/closed/"));
        let waits = [("cs_punt_stale", 1), ("cs_punt_waits", 1)];
        node.run(&segment.frame()).expect(Drop, &waits);
        assert_eq!(node.tcb(&client), None);
        let next = other.data(get("/closed/"));
        let known = other.entry(&node);
        node.run(&next.frame()).expect(Drop, &waits);
        other.is_unchanged(&node, &known);
        // One that was asked before is sent again by its client: it waits no longer.
        let seen = node.run(&asked.frame());
        assert_eq!(
            (seen.verdict, seen.counted.get("cs_request")),
            (Tx, Some(&1))
        );
        let entry = connection.entry(&node);
        assert_eq!((entry.pool, u32::from(entry.state) & TCB_PUNTED), (A, 0));
        read(&punts);
    }
}

/// The ring is full: the same, and no frame is lost that is in it. What waits is judged as soon as there is room.
#[test]
fn a_full_ring() {
    let (node, punts) = node();
    let mut asked = 0;
    while stranger_is_shown(&node) {
        asked += 1;
        assert!(asked < 10_000, "the ring has no end");
    }
    assert!(asked > 500, "{asked}");
    let (client, other) = first(&node, get("/asked/"));
    let full = [("cs_adopt", 1), ("cs_punt_full", 1)];
    node.run(&other.frame()).expect(Tx, &full);
    assert_eq!(node.tcb(&client).unwrap().pool, A);
    let (client, waiting) = first(&node, get("/closed/"));
    let waits = [("cs_punt_full", 1), ("cs_punt_waits", 1)];
    node.run(&waiting.frame()).expect(Drop, &waits);
    assert_eq!(node.tcb(&client), None);
    assert_eq!(records(&node), asked);
    node.run(&waiting.frame()).expect(Drop, &[("cs_punted", 1)]);
    assert_eq!(records(&node), 1);
    drop(punts);
}

/// Whether user space is shown the first request of a client whose address no other case has.
fn stranger_is_shown(node: &Node) -> bool {
    let client = Client::from_afar(HTTP);
    let request = client.get(node.cookie(&client)).payload(get("/asked/"));
    node.run(&request.frame()).verdict == Drop
}

/// One client asks on many connections. It fills little more than half of the ring, and others' requests are shown as ever.
#[test]
fn one_client_does_not_fill_the_ring() {
    let (node, punts) = node();
    let mut asked = 0;
    loop {
        let (client, request) = first(&node, get("/closed/"));
        let seen = node.run(&request.frame());
        assert_eq!(node.tcb(&client), None);
        if seen.counted.contains_key("cs_punt_share") {
            seen.expect(Drop, &[("cs_punt_share", 1), ("cs_punt_waits", 1)]);
            break;
        }
        seen.expect(Drop, &[("cs_punted", 1)]);
        asked += 1;
    }
    let shown = (0..100).filter(|_| stranger_is_shown(&node)).count();
    assert!(
        shown > 90,
        "few have a hash like the loud client's: {shown}"
    );
    assert_eq!(records(&node), asked + shown);
    // There is room again for who had more than his share.
    let (_, request) = first(&node, get("/closed/"));
    node.run(&request.frame()).expect(Drop, &[("cs_punted", 1)]);
    drop(punts);
}

/// How many lie in the ring, however old they are: the reader of punts passes over what is too old.
fn records(node: &Node) -> usize {
    let count = Cell::new(0);
    let map = map_named(node.plane(), "punts");
    let mut ring = RingBufferBuilder::new();
    ring.add(&map, |_| {
        count.set(count.get() + 1);
        0
    })
    .unwrap();
    ring.build().unwrap().consume().unwrap();
    count.get()
}

/// What pins a connection is forwarded, whatever it asks for.
#[test]
fn a_pinned_connection_asks_for_no_verdict() {
    let (node, punts) = node();
    let mut connection = Connection::open(&node, get("/a/"));
    connection.ack += ANSWER;
    let post = connection.data("POST /asked/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
    let seen = connection.send(&node, &post);
    seen.expect(Tx, &forwarded_and("cs_pinned", &post));
    assert_eq!(read(&punts), []);
}
