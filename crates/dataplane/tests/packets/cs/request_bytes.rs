//! Requests byte by byte: as long and as short as they come, at every offset, and what is beside them.

use super::{
    fate::{Asks, Fate, Moves, Pins, Stays, Waits, meets, second},
    http::routes_by_name,
};
use crate::{cluster::MSS, node::Node, segment::Segment};

/// Pieces of the shortest request, down to a byte.
#[test]
fn too_short_to_be_one() {
    let node = Node::cs();
    routes_by_name(&node);
    let whole = b"GET / HTTP/1.0\r\n\r\n";
    for bytes in 1..whole.len() {
        meets(&node, &format!("{bytes} bytes"), Asks, &whole[..bytes]);
    }
    meets(&node, "whole", Stays, whole);
}

/// The end, and what makes a request odd, are found at every offset from a word's beginning.
#[test]
fn at_every_offset() {
    let node = Node::cs();
    routes_by_name(&node);
    for filler in 0..32 {
        let x = "x".repeat(filler);
        let with = |line: &str| format!("GET /ds2/{x} HTTP/1.1\r\n{line}\r\nX: y\r\n\r\n");
        let run = |line, fate| {
            let name = format!("{line}, {filler} bytes later");
            meets(&node, &name, fate, with(line).as_bytes());
        };
        run("Host: a", Moves);
        run("Content-Type: a/b", Moves);
        run("Content-Length: 1", Waits(1));
        run("Transfer-Encoding: x", Pins);
        run("Upgrade: x", Pins);
        run(" folded", Asks);
        run("Host: a\r\nHost: b", Asks);
        let more = with("Host: a") + "x";
        meets(&node, &more, Pins, more.as_bytes());
        let less = with("Host: a");
        meets(&node, &less, Pins, &less.as_bytes()[..less.len() - 1]);
    }
}

/// Of the same text one request is left behind: what a longer one had is none of a shorter one's.
#[test]
fn a_long_request_leaves_nothing_to_a_short_one() {
    let node = Node::cs();
    routes_by_name(&node);
    let long = format!(
        "GET /ds2/ HTTP/1.1\r\nX: {}\r\nContent-Length: 5\r\n\r\n",
        "\r\n\r\n".repeat(100)
    );
    for _ in 0..4 {
        meets(&node, "long", Pins, long.as_bytes());
        for bytes in 18..40 {
            let path = "x".repeat(bytes - 18);
            let short = format!("GET /{path} HTTP/1.0\r\n\r\n");
            meets(&node, &short, Stays, short.as_bytes());
            // Of what is too short to be a request nothing is read but the target.
            let fate = if bytes == 18 { Asks } else { Pins };
            meets(&node, &short, fate, &short.as_bytes()[..bytes - 1]);
        }
    }
}

/// As long as a segment that can be wrapped, and longer ones: without options, so that all the MSS is
/// for the request.
#[test]
fn long_cookies() {
    let node = Node::cs();
    routes_by_name(&node);
    let mss = usize::from(MSS);
    for (bytes, fate) in [
        (1000, Moves),
        (mss - 1, Moves),
        (mss, Moves),
        // It may be on its way, but not inside HANDOVER.
        (mss + 1, Waits(0)),
        (mss + 100, Waits(0)),
    ] {
        let line = "GET /ds2/ HTTP/1.1\r\nHost: a\r\nCookie: \r\n\r\n";
        let cookie = "c".repeat(bytes - line.len());
        let request = line.replace("Cookie: ", &format!("Cookie: {cookie}"));
        assert_eq!(request.len(), bytes);
        let name = format!("{bytes} bytes");
        second(&node, &name, fate, |packet| {
            packet.options([]).payload(request.clone())
        });
    }
}

/// What is beside the payload makes no request of it, or an end.
#[test]
fn flags_and_options() {
    const GET: &str = "GET /ds2/ HTTP/1.1\r\nHost: a\r\n\r\n";
    let cases: [(&str, Fate, fn(Segment) -> Segment); 8] = [
        ("PSH", Moves, |get| get),
        ("no PSH", Moves, |get| get.flags("A")),
        ("congestion", Moves, |get| get.flags("PAEC")),
        ("FIN", Pins, |get| get.flags("FPA")),
        ("URG", Pins, |get| get.flags("PAU")),
        ("no timestamps", Moves, |get| get.options([])),
        ("the most options", Moves, |get| get.options([1; 40])),
        ("the most IP options", Moves, |get| get.ip_options([1; 40])),
    ];
    let node = Node::cs();
    routes_by_name(&node);
    for (name, fate, change) in cases {
        second(&node, name, fate, |packet| change(packet.payload(GET)));
    }
}
