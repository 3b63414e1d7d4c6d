//! What is surely one whole request without a body, so that the connection may move at it; what has a body
//! of known length, so that it may move behind that; and what is neither, so that it moves no more. What servers may read otherwise than the program asks user space. In the tables `|` is a
//! line's end.

use super::{
    fate::{Asks, Fate, Moves, Pins, Stays, Waits, meets},
    http::routes_by_name,
};
use crate::node::Node;

/// Request lines; a Host line and the empty one follow.
const REQUEST_LINES: &[(&str, Fate, &str)] = &[
    ("GET", Moves, "GET /ds2/ HTTP/1.1"),
    ("HEAD", Moves, "HEAD /ds2/ HTTP/1.1"),
    ("OPTIONS", Moves, "OPTIONS /ds2/ HTTP/1.1"),
    ("OPTIONS of the server", Asks, "OPTIONS * HTTP/1.1"),
    ("a query", Moves, "GET /ds2/?a=b&c=%20 HTTP/1.1"),
    ("absolute-form", Asks, "GET http://a/ds2/ HTTP/1.1"),
    ("a target that is no path", Asks, "GET ds2 HTTP/1.1"),
    ("POST", Pins, "POST /ds2/ HTTP/1.1"),
    ("PUT", Pins, "PUT /ds2/ HTTP/1.1"),
    ("PATCH", Pins, "PATCH /ds2/ HTTP/1.1"),
    ("DELETE", Pins, "DELETE /ds2/ HTTP/1.1"),
    ("TRACE", Pins, "TRACE /ds2/ HTTP/1.1"),
    ("CONNECT", Pins, "CONNECT /ds2/ HTTP/1.1"),
    ("PROPFIND", Pins, "PROPFIND /ds2/ HTTP/1.1"),
    ("a method of nine letters", Asks, "SUBSCRIBE /ds2/ HTTP/1.1"),
    ("small letters", Asks, "get /ds2/ HTTP/1.1"),
    ("a longer method", Pins, "GETS /ds2/ HTTP/1.1"),
    ("a tab behind the method", Asks, "GET\t/ds2/ HTTP/1.1"),
    (
        "a length in the target",
        Moves,
        "GET /ds2/Content-Length:5 HTTP/1.1",
    ),
];

/// Header lines; a request line comes before, and the empty one behind.
const HEADERS: &[(&str, Fate, &str)] = &[
    ("small letters in names", Moves, "host:a|accept:*/*"),
    ("an empty value", Moves, "Host: a|Accept:"),
    ("an empty host", Asks, "Host:|Accept:"),
    ("Content-Type", Moves, "Host: a|Content-Type: a/b"),
    ("Content-Encoding", Moves, "Content-Encoding: br|Host: a"),
    (
        "an insecure page",
        Moves,
        "Upgrade-Insecure-Requests: 1|Host: a",
    ),
    ("Connection", Moves, "Host: a|Connection: keep-alive"),
    ("TE", Moves, "Host: a|TE: trailers"),
    ("another's length", Moves, "Host: a|X-Content-Length: 5"),
    ("a length in a value", Moves, "X: Content-Length: 5|Host: a"),
    ("Host in a value", Moves, "Host: a|X: Host: b"),
    ("X-Host", Moves, "Host: a|X-Host: b"),
    ("Content-Length", Waits(5), "Host: a|Content-Length: 5"),
    (
        "a longer one",
        Waits(12_345),
        "Content-Length: 12345|Host: a",
    ),
    ("of too many digits", Pins, "Content-Length: 1234567890"),
    ("with zeros before", Waits(5), "Content-Length: 000000005"),
    ("two of them", Pins, "Content-Length: 5|Content-Length: 5"),
    ("two in one", Pins, "Content-Length: 5, 5"),
    ("none", Pins, "Content-Length:"),
    ("a blank", Pins, "Content-Length: |Host: a"),
    ("two blanks", Pins, "Content-Length:  5"),
    ("a tab", Pins, "Content-Length:\t5"),
    ("a sign", Pins, "Content-Length: +5"),
    ("below zero", Pins, "Content-Length: -5"),
    ("in hexadecimal", Pins, "Content-Length: 0x5"),
    ("a blank behind", Pins, "Content-Length: 5 |Host: a"),
    ("a longer name", Pins, "Content-Lengthy: 5"),
    (
        "and Transfer-Encoding",
        Pins,
        "Content-Length: 5|Transfer-Encoding: chunked",
    ),
    ("Expect", Pins, "Content-Length: 5|Expect: 100-continue"),
    ("the same of nothing", Waits(0), "Host: a|Content-Length: 0"),
    ("the same in other letters", Waits(2), "cOnTeNt-LeNgTh:2"),
    ("the same with a blank", Pins, "Content-Length : 2"),
    ("Transfer-Encoding", Pins, "Transfer-Encoding: chunked"),
    (
        "the same in capitals",
        Pins,
        "Host: a|TRANSFER-ENCODING: chunked",
    ),
    ("Upgrade", Pins, "Connection: upgrade|Upgrade: websocket"),
    ("Upgrade to HTTP/2", Pins, "Host: a|upgrade:h2c"),
    ("two hosts", Asks, "Host: a|Host: b"),
    ("the same host twice", Asks, "Host: a|X: y|HOST: a"),
    ("a folded line", Asks, "Host: a|X: y| z"),
    ("one folded with a tab", Asks, "Host: a|X: y|\tz"),
    ("a blank before the first name", Asks, " Host: a"),
    ("a carriage return alone", Pins, "Host: a|\rX: y"),
    ("a carriage return in a value", Moves, "X: a\rb"),
    ("an empty line too many", Pins, "Host: a|"),
];

/// Whole payloads, some of which are no HTTP/1 at all.
const PAYLOADS: &[(&str, Fate, &str)] = &[
    ("HTTP/1.0", Moves, "GET /ds2/ HTTP/1.0||"),
    ("the shortest there is", Stays, "GET / HTTP/1.0||"),
    (
        "POST with a body",
        Waits(0),
        "POST /ds2/ HTTP/1.1|Content-Length: 2||ab",
    ),
    ("no method", Asks, "/ds2/ HTTP/1.1|Host: aaaaaaaaa||"),
    (
        "an empty line before",
        Asks,
        "|GET /ds2/ HTTP/1.1|Host: a||",
    ),
    (
        "with a part of it",
        Waits(3),
        "PUT /ds2/ HTTP/1.1|Content-Length: 5||ab",
    ),
    (
        "with more than it",
        Pins,
        "PUT /ds2/ HTTP/1.1|Content-Length: 1||ab",
    ),
    (
        "DELETE of nothing",
        Waits(0),
        "DELETE /ds2/ HTTP/1.1|Content-Length: 0||",
    ),
    (
        "a length and a body",
        Waits(0),
        "GET /ds2/ HTTP/1.1|Content-Length: 2||ab",
    ),
    ("line feeds alone", Asks, "GET /ds2/ HTTP/1.1\nHost: a\n\n"),
    (
        "a line feed alone at the end",
        Asks,
        "GET /ds2/ HTTP/1.1|Host: a|\n",
    ),
    (
        "a line feed alone before",
        Moves,
        "GET /ds2/ HTTP/1.1\nHost: a||",
    ),
    ("a byte too few", Pins, "GET /ds2/ HTTP/1.1|Host: a|\r"),
    ("a line too few", Pins, "GET /ds2/ HTTP/1.1|Host: a|"),
    ("half a line", Asks, "GET /ds2/ HTTP/1.1|Host: a"),
    (
        "a request line alone",
        Asks,
        "GET /ds2/index.html HTTP/1.1|",
    ),
    ("half a target", Asks, "GET /ds2/index.html/and/so/on"),
    ("a byte too many", Pins, "GET /ds2/ HTTP/1.1|Host: a||x"),
    (
        "two requests",
        Pins,
        "GET /ds2/ HTTP/1.1|Host: a||GET /ds2/ HTTP/1.1|Host: a||",
    ),
    (
        "one and a half",
        Pins,
        "GET /ds2/ HTTP/1.1|Host: a||GET /ds2/ HTT",
    ),
    ("HTTP/2", Asks, "PRI * HTTP/2.0||SM||"),
    (
        "TLS",
        Asks,
        "\x16\x03\x01\x02\0\x01\0\x01\x7c\x03\x03aaaaaaaaaaaaaaaa",
    ),
    (
        "zeros",
        Asks,
        "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    ),
    ("line ends alone", Asks, "||||||||||||||||"),
    ("SMTP", Asks, "EHLO client.example.org|"),
];

#[test]
fn every_request_line() {
    run(REQUEST_LINES, |line| format!("{line}|Host: a||"));
}

#[test]
fn every_kind_of_header() {
    run(HEADERS, |lines| format!("GET /ds2/ HTTP/1.1|{lines}||"));
}

#[test]
fn every_end_of_a_request() {
    run(PAYLOADS, str::to_owned);
}

fn run(cases: &[(&str, Fate, &str)], whole: impl Fn(&str) -> String) {
    let node = Node::cs();
    routes_by_name(&node);
    for (name, fate, part) in cases {
        let request = whole(part).replace('|', "\r\n");
        meets(&node, name, *fate, request.as_bytes());
    }
}

/// Bytes that no text has.
#[test]
fn binary_garbage() {
    let node = Node::cs();
    routes_by_name(&node);
    let mut random = fastrand::Rng::with_seed(7);
    meets(&node, "all ones", Asks, &[0xff; 100]);
    for bytes in 1..200 {
        let garbage: Vec<u8> = (0..bytes).map(|_| random.u8(..)).collect();
        meets(&node, &format!("{garbage:?}"), Asks, &garbage);
    }
}
