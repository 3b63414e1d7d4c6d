//! The program at tc egress finds out where responses end, whatever they are framed by, and however they are cut.

use std::{
    io::Write as _,
    net::TcpStream,
    os::fd::{AsRawFd as _, RawFd},
};

use baton_abi::{
    RESPONSE_BODY, RESPONSE_CHUNK_END, RESPONSE_CHUNK_SIZE, RESPONSE_COMPLETE, RESPONSE_HEAD,
    RESPONSE_TRAILER_BEGIN, RESPONSE_TUNNEL, RESPONSE_UNKNOWN, Response, SERVICE_PATHS,
};
use fastrand::Rng;
use libbpf_rs::{MapCore as _, MapFlags};
use zerocopy::FromBytes as _;

use crate::{
    data_server::door::owner::{ELSEWHERE, LET_IN, routed},
    prelude::*,
};

/// A connection whose server is about to write its first response.
struct Asked {
    live: Live,
    /// Number of bytes that the client has sent.
    sent: usize,
    /// Number of bytes that the server has written.
    written: usize,
}

impl Asked {
    fn new() -> Self {
        Self::at(attached())
    }

    fn at(node: Node) -> Self {
        let live = Live::adopted_at(node);
        expect_bytes(&live.stream, GET);
        live.stream.set_nodelay(true).unwrap();
        Self {
            live,
            sent: GET.len(),
            written: 0,
        }
    }

    /// The server writes, and the client acknowledges it.
    fn write(&mut self, bytes: &[u8]) {
        (&self.live.stream).write_all(bytes).unwrap();
        self.written += bytes.len();
        self.live.forward(&self.ack());
    }

    fn ack(&self) -> Segment {
        let written = u32::try_from(self.written).unwrap();
        self.live.client.later(COOKIE, self.sent, written)
    }

    /// Has the client send its next request, and checks that the server here gets it.
    fn ask(&mut self, request: &[u8]) {
        let request = self.ack().flags("PA").payload(request);
        self.live.forward(&request);
        expect_bytes(&self.live.stream, &request.payload);
        self.sent += request.payload.len();
    }

    fn seen(&self) -> Response {
        seen(&self.live.node, &self.live.stream)
    }

    fn state(&self) -> u32 {
        self.seen().state.into()
    }
}

/// Returns what the program knows of this connection's responses.
pub fn seen(node: &Node, stream: &TcpStream) -> Response {
    let fd: RawFd = stream.as_raw_fd();
    let map = map_named(node.plane(), "responses");
    let seen = map.lookup(&fd.to_ne_bytes(), MapFlags::ANY).unwrap();
    Response::read_from_bytes(&seen.expect("nothing was seen")).unwrap()
}

/// What a server may write behind the line "HTTP/1.1 200 OK", by the state in which that leaves its responses.
const FRAMINGS: &[(u32, &[&str])] = &[
    (
        RESPONSE_COMPLETE,
        &[
            "Content-Length: 0\r\n\r\n",
            "content-length:3\r\n\r\nabc",
            // There may be blanks around a length, and other names may begin like a known one.
            "Content-Length: \t  3  \r\n\r\nabc",
            // Of several codings the last one counts. Where that is not "chunked" the body ends with the connection.
            "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            "Transfer-Encoding: gzip\r\nTransfer-Encoding:,\tchunked \r\n\r\n0\r\n\r\n",
            "Transfer-Encoding: chunked\r\n\r\n3;a=\"b\"\r\nabc\r\n000\r\n\r\n",
            "Transfer-Encoding: chunked\r\n\r\n1E\r\n0\r\n\r\n0123456789012345678901234\r\n0\r\nX: y\r\n\r\n",
            "Transfer-Encoding: chunked\r\n\r\n0000000000000003\r\nabc\r\n0000000000000000\r\n\r\n",
        ],
    ),
    (
        RESPONSE_BODY,
        &[
            "Content-Length: 3\r\n\r\nab",
            "Content-Length: 99999999999999\r\n\r\nab",
        ],
    ),
    (
        RESPONSE_UNKNOWN,
        &[
            // The body has more bytes than its length says.
            "Content-Length: 3\r\n\r\nabcd",
            // The body ends with the connection.
            "Server: x\r\n\r\nab",
            // Clients do not agree about a blank in front of a colon.
            "Content-Length: 3\r\nTransfer-Encoding : chunked\r\n\r\nabc",
            "Connection : close\r\nContent-Length: 3\r\n\r\nabc",
            // Clients read these in different ways.
            "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
            "Content-Length: 3, 3\r\n\r\nabc",
            "X: y\r\n Content-Length: 3\r\n\r\nabc",
            "Content-Length : 3\r\n\r\nabc",
            "Content-Length: +3\r\n\r\nabc",
            "Content-Length: 3 3\r\n\r\nabc",
            "Content-Length: \r\n\r\nabc",
            "Content-Length: 99999999999999999999\r\n\r\n",
            // Of several codings the last one counts. Where that is not "chunked" the body ends with the connection.
            "Transfer-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
            "Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "Transfer-Encoding: chunkedly\r\n\r\n0\r\n\r\n",
            "Transfer-Encoding: chunked\r\n\r\nx\r\n",
            "Transfer-Encoding: chunked\r\n\r\n100000000\r\n",
        ],
    ),
    (RESPONSE_HEAD, &["Content-Le"]),
    (
        RESPONSE_CHUNK_SIZE,
        &[
            "Transfer-Encoding: chunked\r\n\r\n",
            "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
            // Content-Length does not count beside Transfer-Encoding (RFC 9112, 6.3).
            "Content-Length: 3\r\ntransfer-encoding:Chunked\r\n\r\n0",
        ],
    ),
    (
        RESPONSE_CHUNK_END,
        &["Transfer-Encoding: chunked\r\n\r\n3\r\nabc"],
    ),
    (
        RESPONSE_TRAILER_BEGIN,
        &["Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n"],
    ),
];

/// What else a server may write.
const OTHER_FRAMINGS: &[(u32, &[&str])] = &[
    (
        RESPONSE_COMPLETE,
        &[
            "HTTP/1.1 204 No Content\r\n\r\n",
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
            "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc",
            // There may be blanks around a length, and other names may begin like a known one.
            "HTTP/1.1 200\r\nContent-Lengths: 9\r\nContent-Type: a\r\nT: u\r\nContent-Length:003\r\n\r\nabc",
            // Interim responses announce the final one, which may not be there yet.
            "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
        ],
    ),
    (
        RESPONSE_UNKNOWN,
        &[
            // Clients read these in different ways.
            "HTTP/1.1 200 OK\nContent-Length: 3\n\nabc",
            // No head.
            "HTTP/1.1 2x0 OK\r\n\r\n",
            "220 smtp.example\r\n",
        ],
    ),
    (
        RESPONSE_TUNNEL,
        &[
            // Behind a 101, another protocol is spoken.
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nHTTP/1.1 204 No\r\n\r\n",
        ],
    ),
    (RESPONSE_HEAD, &["HTTP/1.1 2"]),
    (
        RESPONSE_BODY,
        &[
            // There are two responses at once.
            "HTTP/1.1 204 No\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na",
        ],
    ),
];

fn framings() -> Vec<(String, u32)> {
    let mut all = Vec::new();
    for (head, framings) in [("HTTP/1.1 200 OK\r\n", FRAMINGS), ("", OTHER_FRAMINGS)] {
        for (state, texts) in framings {
            all.extend(texts.iter().map(|text| (format!("{head}{text}"), *state)));
        }
    }
    all
}

#[test]
fn each_framing() {
    let _host = own_host();
    for (text, state) in framings() {
        let mut asked = Asked::new();
        asked.write(text.as_bytes());
        assert_eq!(asked.state(), state, "{text:?}");
    }
}

/// HTTP does not depend on where segments begin, so a response may be cut anywhere.
#[test]
fn each_framing_in_pieces() {
    let _host = own_host();
    let random = &mut Rng::with_seed(1);
    for (text, state) in framings() {
        let mut asked = Asked::new();
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(random.usize(1..=3.min(rest.len())));
            asked.write(piece);
            rest = behind;
        }
        assert_eq!(asked.state(), state, "{text:?}");
    }
}

/// A head may be longer than what the program reads of a packet at once.
#[test]
fn a_head_of_many_kilobytes() {
    let _host = own_host();
    for kilobytes in [3, 20, 60] {
        let mut asked = Asked::new();
        let cookie = format!("Set-Cookie: c={}; Path=/\r\n", "x".repeat(1000 - 22));
        let cookies = cookie.repeat(kilobytes);
        let head = format!("HTTP/1.1 200 OK\r\n{cookies}Content-Length: 3\r\n\r\nab");
        // Each piece is as much as TCP sends before anything is acknowledged.
        for piece in head.as_bytes().chunks(8000) {
            asked.write(piece);
        }
        assert_eq!(asked.state(), RESPONSE_BODY, "{kilobytes} KB");
        asked.write(b"c");
        assert_eq!(asked.state(), RESPONSE_COMPLETE, "{kilobytes} KB");
    }
}

/// The connection goes only if all responses are complete: not while a response pauses, and not before it begins.
#[test]
fn it_moves_between_responses_only() {
    let pieces: &[(&[u8], bool)] = &[
        (b"HTTP/1.1 103 Early Hints\r\n\r\n", false),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            false,
        ),
        (b"5\r\nabcde\r\n", false),
        (b"0\r\n", false),
        (b"\r\n", true),
    ];
    for until in 1..=pieces.len() {
        let _host = own_host();
        let mut asked = Asked::at(routed());
        for (piece, _) in &pieces[..until] {
            asked.write(piece);
        }
        asked.live.expect(&[("ds_forwarded", until as u64)]);
        let request = asked.ack().flags("PA").payload(ELSEWHERE);
        asked.live.forward(&request);
        let counter = if pieces[until - 1].1 {
            "ds_door_handed_on"
        } else {
            "ds_door_withheld"
        };
        asked.live.expect(&[(counter, 1)]);
    }
}

/// Has the server write a response in two pieces, of which the program does not see the first. The client acknowledges
/// nothing.
fn write_unseen_first(asked: &mut Asked) {
    let pieces: [&[u8]; 2] = [b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\na", b"bcd"];
    judges_nothing(&asked.live.node);
    (&asked.live.stream).write_all(pieces[0]).unwrap();
    owns(&asked.live.node, SERVICE_PATHS);
    (&asked.live.stream).write_all(pieces[1]).unwrap();
    asked.written += pieces[0].len() + pieces[1].len();
}

/// A head may be dropped before the program sees it, while what is behind it leaves: a queue in front of a neighbour
/// whose address is not known drops the oldest packets. TCP sends the head again, and then it is known where the response
/// ends.
#[test]
fn a_head_may_come_behind_its_body() {
    let _host = own_host();
    send_again();
    let mut asked = Asked::at(routed());
    write_unseen_first(&mut asked);
    assert_ne!(asked.seen().ahead, 0);
    until(|| asked.seen().ahead == 0);
    assert_eq!(asked.state(), RESPONSE_COMPLETE);
    asked.live.forward(&asked.ack());
    asked.live.expect(FORWARDED);
    let request = asked.ack().flags("PA").payload(ELSEWHERE);
    asked.live.forwards(&request, &[("ds_door_handed_on", 1)]);
}

/// If the client has acknowledged what the program has not seen, TCP never sends it again, so the response cannot be
/// followed.
#[test]
fn what_was_acknowledged_unseen_never_comes() {
    let _host = own_host();
    let mut asked = Asked::at(routed());
    write_unseen_first(&mut asked);
    asked.live.forward(&asked.ack());
    asked.live.expect(FORWARDED);
    let request = asked.ack().flags("PA").payload(ELSEWHERE);
    asked.live.forwards(&request, &[("ds_door_stays", 1)]);
}

/// A connection stays while a request has no answer yet, although the response before is complete. A connection on
/// which no HTTP is spoken cannot be followed.
#[test]
fn what_was_asked_since_counts() {
    {
        let _host = own_host();
        let mut asked = Asked::at(routed());
        asked.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na");
        asked.live.expect(FORWARDED);
        asked.ask(GET);
        asked.live.expect(LET_IN);
        let request = asked.ack().flags("PA").payload(ELSEWHERE);
        asked.live.forwards(&request, &[("ds_door_withheld", 1)]);
    }
    let _host = own_host();
    let mut asked = Asked::new();
    asked.write(b"220 smtp.example\r\n");
    asked
        .live
        .expect(&[("ds_forwarded", 1), ("ds_response_unknown", 1)]);
    // What comes later does not make the response known either.
    asked.write(b"HTTP/1.1 204 No\r\n\r\n");
    asked.live.expect(FORWARDED);
    assert_eq!(asked.state(), RESPONSE_UNKNOWN);
}

/// Behind a response with which its server ends the connection, nobody answers anything: a request for another data
/// server is not carried out, and the response is not cut short for it.
#[test]
fn nothing_is_answered_behind_the_last_response() {
    const LAST: &str = "ds_door_last";
    const GOES: &str = "ds_door_handed_on";
    for (lines, becomes) in [
        ("Content-Length: 1\r\nConnection: close\r\n\r\na", LAST),
        (
            "connection:CLOSE\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            LAST,
        ),
        ("Connection: close, te\r\nContent-Length: 0\r\n\r\n", LAST),
        ("Content-Length: 9\r\nConnection: close\r\n\r\na", LAST),
        ("Server: x\r\n\r\nab", LAST),
        ("Transfer-Encoding: gzip\r\nServer: x\r\n\r\nab", LAST),
        ("Connection: keep-alive\r\nContent-Length: 0\r\n\r\n", GOES),
        ("Connection: closed\r\nContent-Length: 0\r\n\r\n", GOES),
        ("X-Connection: close\r\nContent-Length: 0\r\n\r\n", GOES),
    ] {
        nothing_behind(&[&format!("HTTP/1.1 200 OK\r\n{lines}")], becomes);
    }
    // A response of HTTP/0.9 has no head, and ends with the connection.
    nothing_behind(&["<html>"], LAST);
    // The same holds for a head that is read byte by byte.
    for (lines, becomes) in [
        ("Connection: close", LAST),
        ("CONNECTION:Close ", LAST),
        ("Connection: te,close\r\nContent: a", LAST),
        ("Connection: te , close , a", LAST),
        ("Connection: keep-alive", GOES),
        ("Connection: closed, clos e, clos, close te", GOES),
        (
            "Connections: close\r\nConn: close\r\nContention: close",
            GOES,
        ),
    ] {
        let rest = format!(" OK\r\n{lines}\r\nContent-Length: 0\r\n\r\n");
        nothing_behind(&["HTTP/1.1 200", &rest], becomes);
    }
}

/// Has a server answer in these pieces, and checks which counter a request for another data server then moves.
#[track_caller]
fn nothing_behind(pieces: &[&str], becomes: &str) {
    let _host = own_host();
    let mut asked = Asked::at(routed());
    for piece in pieces {
        asked.write(piece.as_bytes());
    }
    asked.state();
    await_counted(&asked.live.node, "ds_forwarded");
    asked.live.node.look();
    let request = asked.ack().flags("PA").payload(ELSEWHERE);
    asked.live.forwards(&request, &[(becomes, 1)]);
}

/// A connection whose response cannot be followed ends with the request for another data server, because nobody knows
/// when the connection is quiet.
#[test]
fn behind_a_response_that_cannot_be_followed_the_connection_ends() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na",
    ] {
        nothing_behind(&[answer], "ds_door_stays");
    }
}

/// The answer to HEAD states the length of a body, but has no body.
#[test]
fn head_has_no_body() {
    let _host = own_host();
    let mut asked = Asked::new();
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 70\r\n\r\n";
    asked.write(b"HTTP/1.1 204 No\r\n\r\n");
    for before in ["", "\r\n", "\r\n\r\n", "\n", &"\r\n".repeat(8)] {
        asked.ask(format!("{before}HEAD /a HTTP/1.1\r\nHost: b\r\n\r\n").as_bytes());
        asked.write(answer);
        assert_eq!(asked.state(), RESPONSE_COMPLETE, "{before:?}");
    }
    asked.ask(GET);
    asked.write(answer);
    assert_eq!(asked.state(), RESPONSE_BODY);
}

/// The empty line that ends a chunked body is not one in front of the next request. The answer to the request with that
/// body has a body itself, though a HEAD follows.
#[test]
fn a_head_behind_the_end_of_a_chunked_body_is_the_next_request() {
    let _host = own_host();
    let mut asked = Asked::at(routed());
    asked.write(b"HTTP/1.1 204 No\r\n\r\n");
    asked.ask(b"POST / HTTP/1.1\r\nHost: b\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n");
    let end = (asked.ack().flags("PA")).payload("\r\nHEAD /a HTTP/1.1\r\nHost: b\r\n\r\n");
    asked.live.forward(&end);
    expect_bytes(&asked.live.stream, b"\r\n");
    asked.sent += 2;
    asked.write(b"HTTP/1.1 200 OK\r\nContent-Length: 70\r\n\r\n");
    assert_eq!(asked.state(), RESPONSE_BODY);
}

/// A HEAD is also known if it is the request with which the connection is adopted, even if no program sees the socket
/// being made.
#[test]
fn head_is_known_from_the_first_request_on() {
    for sees_sockets in [true, false] {
        let _host = own_host();
        head_comes_first(sees_sockets);
    }
}

fn head_comes_first(sees_sockets: bool) {
    let (listener, node, client) = (listen(WEB), attached(), Client::fresh());
    if sees_sockets {
        let netns = baton_net::netns::cookie().unwrap();
        node.change(|settings| settings.netns = netns);
    }
    let request = client.get(COOKIE).payload("HEAD /a HTTP/1.1\r\n\r\n");
    send_adopt(&node, &request);
    let (mut stream, _) = accept(&listener);
    stream
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 70\r\n\r\n")
        .unwrap();
    let state = seen(&node, &stream).state;
    assert_eq!(u32::from(state), RESPONSE_COMPLETE);
}

/// Returns a random response behind which another one may follow.
fn any_response(random: &mut Rng) -> Vec<u8> {
    let body = |random: &mut Rng, most: usize| -> Vec<u8> {
        // Inside a body, what looks like framing is none.
        let text = b"0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n";
        let length = random.usize(..most);
        text.iter().copied().cycle().take(length).collect()
    };
    match random.usize(..4) {
        0 => b"HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n".to_vec(),
        1 => b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n".to_vec(),
        2 => {
            let body = body(random, 3000);
            let (before, behind) =
                [("", ""), ("", "  "), ("   ", ""), ("\t", " ")][random.usize(..4)];
            let length = format!("{before}{}{behind}", body.len());
            let head = format!("HTTP/1.1 200 OK\r\nTE: x\r\nContent-Length:{length}\r\n\r\n");
            [head.as_bytes(), &body].concat()
        }
        _ => {
            let mut all = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
            for _ in 0..random.usize(..6) {
                let chunk = body(random, 600);
                if !chunk.is_empty() {
                    let extension = ["", ";a", " ; b=\"c\""][random.usize(..3)];
                    let size = if random.bool() {
                        format!("{:x}", chunk.len())
                    } else {
                        format!("{:016X}", chunk.len())
                    };
                    all.extend(format!("{size}{extension}\r\n").as_bytes());
                    all.extend(&chunk);
                    all.extend(b"\r\n");
                }
            }
            let end = ["0\r\n\r\n", "00;x\r\n\r\n", "0\r\nX: y\r\nZ:\r\n\r\n"];
            all.extend(end[random.usize(..3)].as_bytes());
            all
        }
    }
}

#[test]
fn any_responses_cut_anywhere() {
    let _host = own_host();
    for seed in 1..=40 {
        let random = &mut Rng::with_seed(seed);
        let mut asked = Asked::new();
        for _ in 0..8 {
            let response = any_response(random);
            let interim = response.starts_with(b"HTTP/1.1 103");
            let head = response.windows(4).position(|four| four == b"\r\n\r\n");
            let head = head.unwrap() + 4;
            let mut at = 0;
            while at < response.len() {
                let most = [3, 40, 700, 4000][random.usize(..4)].min(response.len() - at);
                let piece = &response[at..at + random.usize(1..=most)];
                asked.write(piece);
                at += piece.len();
                let seen = asked.seen();
                assert_eq!(
                    seen.next,
                    COOKIE.wrapping_add(1 + asked.written as u32),
                    "seed {seed}"
                );
                assert_eq!(
                    u32::from(seen.state) == RESPONSE_COMPLETE,
                    at == response.len() || (interim && at == head),
                    "seed {seed}, {at} of {response:?}, seen {seen:?}"
                );
            }
            asked.ask(GET);
        }
    }
}
