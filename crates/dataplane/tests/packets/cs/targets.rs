//! Targets and hosts: what the program reads by itself, and what it leaves to user space because servers may read it
//! otherwise. Routes keep content apart, so none of it may be routed by what it looks like.

use std::time::Duration;

use baton_abi::{HostKey, SERVICE_PATHS, SERVICE_PUNTS, SERVICE_TARGETS, TCB_PINNED, TCB_PUNTED};
use baton_dataplane::{Findings, Lead, Punt, Punts, Resumed};

use super::http::{ANSWER, Connection, ROUTE, get, route, to};
use crate::{
    cluster::{HTTP, HTTP_SERVICE, first_pool_of_one, key},
    node::{Drop, Node, Tx},
    read::Packet,
    segment::{Client, Segment},
};

const REST: u16 = HTTP_SERVICE;
const A: u16 = first_pool_of_one();
const B: u16 = A + 1;
/// By path.
const BY_PATH: u16 = 5;
const LONG: Duration = Duration::from_secs(3600);

/// `/a/` and `/b/` are pools of their own, and all that `a.test` has is pool B's. The reader has given a sign.
fn node() -> (Node, Punts) {
    let node = Node::fresh_cs();
    let routes = [
        (route(0, "/a/"), A.into()),
        (route(0, "/b/"), B.into()),
        (route(0, "/by-path/"), BY_PATH.into()),
        (route(1, "/"), B.into()),
    ];
    node.plane().set_routes(&routes).unwrap();
    let hosts = [(HostKey::exact("a.test").unwrap(), 1)];
    node.plane().set_hosts(&hosts).unwrap();
    node.change_flags(|flags| flags | SERVICE_TARGETS | SERVICE_PUNTS);
    let punts = node.plane().punts().unwrap();
    punts.give_sign(LONG).unwrap();
    (node, punts)
}

fn first(node: &Node, request: impl Into<Vec<u8>>) -> (Client, Segment) {
    let client = Client::of(HTTP);
    let cookie = node.cookie(&client);
    (client, client.get(cookie).payload(request))
}

#[track_caller]
fn read_one(punts: &Punts) -> Punt {
    let mut all: Vec<Punt> = punts.wait(Duration::ZERO).unwrap().collect();
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

#[track_caller]
fn leaves(resumed: Resumed) -> Packet {
    let Resumed::Leaves(frame) = resumed else {
        panic!("{resumed:?}");
    };
    crate::read::verify_checksums(&frame).unwrap();
    Packet::read(&frame).unwrap()
}

fn with_host(host: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

/// Their packets never leave the kernel, at every offset of what ends the path.
#[test]
fn plain_ones_are_routed_at_once() {
    let (node, punts) = node();
    let mut cases: Vec<(String, u16)> = [
        ("/", REST),
        ("/a", REST),
        ("/a/", A),
        ("/a/?//x/../%00", A),
        ("/a/.?", A),
        ("/b/x.y", B),
        ("/b/x./y", B),
        ("/b/~x;y=1,2&z", B),
        ("/b/\\..\\", B),
        ("/b/a:b@c[d]|e", B),
        ("/A/", REST),
        ("/b?x/", REST),
        ("/b/'()*+-", B),
    ]
    .map(|(target, pool)| (get(target), pool))
    .into();
    // Its dot ends the path: not plain, and below.
    cases.retain(|(request, _)| !request.contains("/.?"));
    for length in 0..500 {
        let x = "x".repeat(length);
        cases.push((get(&format!("/a/{x}")), A));
        cases.push((get(&format!("/b/{x}?/../%")), B));
    }
    cases.push(("GET /a/ HTTP/1.0\r\n\r\n".into(), A));
    cases.push((with_host("a.test"), B));
    cases.push((with_host("A.Test:80"), B));
    cases.push((with_host("a.tests"), REST));
    for (request, pool) in cases {
        let (client, segment) = first(&node, request.as_str());
        node.run(&segment.frame()).expect(Tx, &[("cs_adopt", 1)]);
        assert_eq!(node.tcb(&client).unwrap().pool, pool, "{request}");
    }
    assert_eq!(punts.wait(Duration::ZERO).unwrap().count(), 0);
}

/// Everything that servers may read as another target than it looks, or whose host they may.
fn unclear() -> Vec<String> {
    let targets = [
        "//a/",
        "/./a/",
        "/x/../a/",
        "/%61/",
        "/a%2fx",
        "/b/../a/",
        "/a/.",
        "/a/..",
        "/a/..?x",
        "/x#/../a/",
        "/a/%",
        "/%00",
        "/a/.hidden",
        "/a//",
        "http://h/a/",
        "HTTP://h/a/",
        "*",
        "a/",
        "\\a\\",
        "h:80",
        "/a/ x",
        "/a/\tx",
        "/a/\"",
        "/a/x!",
        "/a/$",
        "/a/\u{1}",
    ];
    let mut cases: Vec<String> = targets.into_iter().map(get).collect();
    // Wherever it stands.
    for length in 0..40 {
        let x = "x".repeat(length);
        for what in ["%", "#", "//", "/.", "/../"] {
            cases.push(get(&format!("/{x}{what}y")));
        }
    }
    cases.push(get(&format!("/{}", "x".repeat(600))));
    for line in [
        "get /a/",
        "G /a/",
        "GE /a/",
        "SUBSCRIBE /a/",
        "M-SEARCH /a/",
        "GET  /a/",
        "GET\t/a/",
        " GET /a/",
        "\r\nGET /a/",
        "\n\n\nGET /a/",
        "\r\n\r\n\r\n\r\n\r\n\r\nGET /a/",
    ] {
        cases.push(format!("{line} HTTP/1.1\r\nHost: h\r\n\r\n"));
    }
    for whole in [
        "GET /a/\r\n\r\n",
        "GET /a/  HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /a/ http/1.1\r\nHost: h\r\n\r\n",
        "GET /a/ HTTP/2.0\r\nHost: h\r\n\r\n",
        "GET /and/so/on",
        "GET /a/ HTTP/1.1\nHost: h\n\n",
        "GET /a/ HTTP/1.1\r\nHost: h\r\nX: y\r\n folded\r\n\r\n",
        "GET / HTTP/1.1\r\nCookie: ",
        "GET / HTTP/1.1\r\nHost: a.te",
        "GET / HTTP/1.1\r\nHost: h\r\nHost: a.test\r\n\r\n",
        "G",
        "\r\n",
        "\u{16}\u{3}\u{1}\u{2}",
    ] {
        cases.push(whole.into());
    }
    let long = format!("{}.a.test", "x".repeat(300));
    for host in [
        "a.test.",
        "a.test.:80",
        "",
        " ",
        "\ta.test",
        "     a.test",
        ":80",
        ".",
        &long,
    ] {
        cases.push(with_host(host));
    }
    cases
}

/// A first request and a further one: user space has it, and it goes where that says.
#[test]
fn all_others_are_user_spaces_to_read() {
    let (node, punts) = node();
    for request in unclear() {
        let (client, segment) = first(&node, request.as_str());
        let seen = node.run(&segment.frame());
        seen.check(Drop, &[("cs_punted", 1), ("cs_target", 1)])
            .unwrap_or_else(|error| panic!("{request:?}: {error}"));
        assert_eq!(node.tcb(&client), None, "{request:?}");
        leaves(punts.resume(&read_one(&punts), to(A), None).unwrap());
        let entry = node.tcb(&client).unwrap();
        assert_eq!((entry.pool, entry.route), (A, ROUTE), "{request:?}");

        let mut connection = Connection::open(&node, get("/a/"));
        connection.ack += ANSWER;
        let before = connection.entry(&node);
        let segment = connection.data(request.as_str());
        let seen = connection.send(&node, &segment);
        seen.check(Drop, &[("cs_punted", 1), ("cs_target", 1)])
            .unwrap_or_else(|error| panic!("{request:?}, as a further one: {error}"));
        let asked = connection.entry(&node);
        assert_eq!(u32::from(asked.state), u32::from(before.state) | TCB_PUNTED);
        let packet = leaves(punts.resume(&read_one(&punts), to(A), None).unwrap());
        assert!(packet.body.ends_with(&segment.payload), "{request:?}");
        assert_eq!(connection.entry(&node).owner, 0, "{request:?}");
    }
}

/// Nobody is there to read it: it waits, as a first request and as a further one, and no server sees it.
#[test]
fn nobody_reads() {
    let (node, punts) = node();
    punts.withdraw().unwrap();
    let waits = [("cs_punt_stale", 1), ("cs_target_waits", 1)];
    for request in unclear() {
        let (client, segment) = first(&node, request.as_str());
        let seen = node.run(&segment.frame());
        seen.check(Drop, &waits)
            .unwrap_or_else(|error| panic!("{request:?}: {error}"));
        assert_eq!(node.tcb(&client), None);
        let mut connection = Connection::open(&node, get("/a/"));
        connection.ack += ANSWER;
        let before = connection.entry(&node);
        let segment = connection.data(request.as_str());
        let seen = connection.send(&node, &segment);
        seen.check(Drop, &waits)
            .unwrap_or_else(|error| panic!("{request:?}, as a further one: {error}"));
        assert_eq!(connection.entry(&node), before, "{request:?}");
    }
    // Once somebody is, the client's next try is read.
    let (client, segment) = first(&node, get("//a/"));
    node.run(&segment.frame()).expect(Drop, &waits);
    punts.give_sign(LONG).unwrap();
    node.run(&segment.frame())
        .expect(Drop, &[("cs_punted", 1), ("cs_target", 1)]);
    leaves(punts.resume(&read_one(&punts), to(A), None).unwrap());
    assert_eq!(node.tcb(&client).unwrap().pool, A);
}

/// What servers refuse is answered with 400, and its connection is at its end.
#[test]
fn a_request_that_is_refused() {
    let (node, punts) = node();
    let (client, segment) = first(&node, get("/../a/"));
    node.run(&segment.frame());
    node.look();
    let packet = leaves(punts.refuse(&read_one(&punts)).unwrap());
    let moved: Vec<_> = node.moved().into_keys().collect();
    assert_eq!(moved, ["cs_target_refused"]);
    is_400(&packet);
    assert_eq!(node.tcb(&client), None);

    let mut connection = Connection::open(&node, get("/a/"));
    connection.ack += ANSWER;
    let request = connection.data(get("/%zz"));
    connection.send(&node, &request);
    node.look();
    is_400(&leaves(punts.refuse(&read_one(&punts)).unwrap()));
    let moved: Vec<_> = node.moved().into_keys().collect();
    assert_eq!(moved, ["cs_target_refused"]);
    assert_eq!(node.tcb(&connection.client), None);
}

fn is_400(packet: &Packet) {
    let text = String::from_utf8_lossy(&packet.body);
    assert!(text.contains("HTTP/1.1 400 Bad Request\r\n"), "{text}");
    assert!(text.contains("Connection:") && text.ends_with("\r\n\r\n"));
    let flags = &packet.tcp().unwrap().header;
    assert!(flags.fin && flags.ack && !flags.rst);
}

/// A further request of another pool moves if it surely is one; else its connection ends before a server sees it.
#[test]
fn a_further_request_of_another_pool() {
    let (node, punts) = node();
    for (request, counted) in [
        (
            get("//b/"),
            &["cs_handover", "cs_punt_decided", "cs_request"][..],
        ),
        (
            format!("\r\n{}", get("/b/")),
            &["cs_handover", "cs_punt_decided", "cs_request"],
        ),
        (
            "get /b/ HTTP/1.1\r\nHost: h\r\n\r\n".into(),
            &[
                "cs_pinned",
                "cs_punt_decided",
                "cs_request",
                "cs_target_unmoved",
                "cs_unavailable",
            ],
        ),
        (
            "PUT //b/ HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n".into(),
            &[
                "cs_pinned",
                "cs_punt_decided",
                "cs_request",
                "cs_target_unmoved",
                "cs_unavailable",
            ],
        ),
    ] {
        let mut connection = Connection::open(&node, get("/a/"));
        connection.ack += ANSWER;
        let segment = connection.data(request.as_str());
        connection.send(&node, &segment);
        node.look();
        leaves(punts.resume(&read_one(&punts), to(B), None).unwrap());
        let moved: Vec<_> = node.moved().into_keys().collect();
        assert_eq!(moved, counted, "{request:?}");
        if counted.contains(&"cs_handover") {
            let entry = connection.entry(&node);
            assert_eq!((entry.pool, entry.owner), (B, 1));
            assert_eq!(entry.next_request, connection.seq);
            assert_eq!(u32::from(entry.state) & TCB_PINNED, 0);
        } else {
            assert_eq!(node.tcb(&connection.client), None);
        }
    }
}

/// Whose target goes on in the next segment: nobody knows where it leads, and its owner keeps it.
#[test]
fn a_further_request_that_is_cut() {
    let (node, punts) = node();
    let mut connection = Connection::open(&node, get("/a/"));
    connection.ack += ANSWER;
    let segment = connection.data("GET /b");
    connection.send(&node, &segment);
    node.look();
    let resumed = punts.resume_by(
        &read_one(&punts),
        to(B),
        None,
        Findings {
            is_cut: true,
            ..Findings::default()
        },
    );
    leaves(resumed.unwrap());
    let moved: Vec<_> = node.moved().into_keys().collect();
    let counted = [
        "cs_forward",
        "cs_forward_bytes",
        "cs_pinned",
        "cs_punt_decided",
        "cs_request",
        "cs_unmoved",
    ];
    assert_eq!(moved, counted);
    let entry = connection.entry(&node);
    assert_eq!(entry.owner, 0);
    assert_ne!(u32::from(entry.state) & TCB_PINNED, 0);
}

/// Where only homes depend on the path, nobody waits for user space.
#[test]
fn without_routes() {
    let (node, punts) = node();
    node.change_flags(|flags| flags & !SERVICE_PATHS);
    let (client, segment) = first(&node, get("//a/"));
    node.run(&segment.frame())
        .expect(Drop, &[("cs_punted", 1), ("cs_target", 1)]);
    leaves(punts.resume(&read_one(&punts), None, None).unwrap());
    assert_eq!(node.tcb(&client).unwrap().pool, REST);
    punts.withdraw().unwrap();
    let (_, segment) = first(&node, get("//a/"));
    let stale = [("cs_adopt", 1), ("cs_punt_stale", 1)];
    node.run(&segment.frame()).expect(Tx, &stale);
    node.change_flags(|flags| flags & !SERVICE_TARGETS);
    let (_, segment) = first(&node, get("//a/"));
    node.run(&segment.frame()).expect(Tx, &[("cs_adopt", 1)]);
}

/// However a path is written, it has one home.
#[test]
fn every_spelling_of_a_path_has_one_home() {
    let (node, punts) = node();
    let lead = Some(Lead {
        pool: BY_PATH,
        route: ROUTE,
        resumes: false,
    });
    for number in 0..40 {
        let rest = "y".repeat(number * 7);
        let plain = format!("/by-path/{number}{rest}");
        let home = Connection::open(&node, get(&plain)).entry(&node).owner;
        let path = baton_wire::Path::read(plain.as_bytes()).unwrap();
        let hash = path.hash(key().hash_key()).map(baton_wire::PathHash::get);
        for target in [
            format!("/{plain}?q"),
            format!("http://h{plain}"),
            plain.replace("path", "p%61th"),
        ] {
            let (client, segment) = first(&node, get(&target));
            node.run(&segment.frame());
            let punt = read_one(&punts);
            leaves(
                punts
                    .resume_by(
                        &punt,
                        lead,
                        None,
                        Findings {
                            path: hash,
                            ..Findings::default()
                        },
                    )
                    .unwrap(),
            );
            assert_eq!(node.tcb(&client).unwrap().owner, home, "{target}");
        }
    }
}

/// Longer than what user space is shown: nobody can ever say where it leads.
#[test]
fn a_target_that_is_too_long_to_be_shown() {
    let (node, punts) = node();
    node.change(|settings| settings.mss = 16_000);
    let (client, segment) = first(&node, get(&format!("//a/{}", "x".repeat(9700))));
    let seen = node.run(&segment.frame());
    let counted = [
        ("cs_punt_too_big", 1),
        ("cs_target_too_big", 1),
        ("cs_unavailable", 1),
    ];
    seen.check(Tx, &counted).unwrap();
    assert_eq!(node.tcb(&client), None);
    assert_eq!(punts.wait(Duration::ZERO).unwrap().count(), 0);
}
