//! Packets that begin with a request: where they end, and what else they may hold. Some packets begin with no request.

use super::{Case, Cut, Divided, Followed, GoesOn, Odd, Outcome, Plain, meet_all, run, run_whole};

/// What may stand behind the host of a request.
const ENDS: &[Case] = &[
    ("a byte too few", Cut, "|\r"),
    ("a line too few", Cut, "|"),
    ("a line that goes on", Cut, "|Cookie: b"),
    ("half a line's end", Cut, "\r"),
    ("a host that may go on", Odd, ""),
    ("a folded line that goes on", Odd, "|X: y| z"),
    ("a byte too many", Divided(1), "||x"),
    ("one line end too many", Divided(2), "|||"),
    ("two requests", Divided(24), "||GET /ds2/ HTTP/1.1|||"),
    ("one and a half", Divided(13), "||GET /ds2/ HTT"),
];

/// Heads that are not whole, in other ways.
const HALVES: &[Case] = &[
    ("no host yet", Odd, "GET /ds{}/index.html HTTP/1.1|"),
    ("half a target", Odd, "GET /ds{}/index.html/and/so/on"),
    (
        "a length that may go on",
        Odd,
        "POST /ds{}/ HTTP/1.1|Host: a|Content-Length: 5",
    ),
];

#[test]
fn every_end_of_a_packet() {
    run(ENDS, |end| format!("GET /ds{{}}/ HTTP/1.1|Host: a{end}"));
    run(HALVES, str::to_owned);
}

/// Every incomplete beginning of the shortest request goes to the agent.
#[test]
fn too_short_to_be_one() {
    const WHOLE: &str = "GET / HTTP/1.0\r\n\r\n";
    meet_all(|at| {
        for bytes in 1..WHOLE.len() {
            at.meets(&format!("{bytes} bytes"), &WHOLE[..bytes], Outcome::Agent);
        }
        at.meets("whole", WHOLE, Outcome::Here(0));
    });
}

#[test]
fn what_is_no_request() {
    run_whole(&[
        ("PRI * HTTP/2.0||SM||", Outcome::Agent),
        ("EHLO client.example.org|", Outcome::Agent),
        ("||||||||||||||||||||||||", Outcome::Agent),
        (
            "\x16\x03\x01\x02\0\x01\0\x01\x7c\x03\x03aaaaaaaaaaaaaaaa",
            Outcome::Agent,
        ),
        (
            "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
            Outcome::Agent,
        ),
        ("HTTP/1.1 200 OK|Content-Length: 0||", Outcome::Agent),
    ]);
    let mut random = fastrand::Rng::with_seed(7);
    let garbage: Vec<Vec<u8>> = (1..64)
        .map(|bytes| (0..bytes).map(|_| random.u8(..)).collect())
        .collect();
    meet_all(|at| {
        at.meets("all ones", [0xff; 100], Outcome::Agent);
        for bytes in &garbage {
            at.meets(&format!("{bytes:?}"), bytes, Outcome::Agent);
        }
    });
}

/// The door reads a word at a time. It finds where a request ends, and what makes it odd, at every offset in a word.
#[test]
fn every_offset() {
    let cases: Vec<Case> = vec![
        ("its end", Plain, "Host: a"),
        ("a length", GoesOn(1), "Content-Length: 1"),
        ("chunks", Followed, "Transfer-Encoding: chunked"),
        ("a coding", Odd, "Transfer-Encoding: x"),
        ("Upgrade", Odd, "Upgrade: x"),
        ("a folded line", Odd, " folded"),
        ("two hosts", Odd, "Host: a|Host: b"),
    ];
    for filler in 0..8 {
        let x = "x".repeat(filler);
        run(&cases, |line| {
            format!("GET /ds{{}}/{x} HTTP/1.1|{line}|X: y||")
        });
    }
}

/// Requests are read into the same buffer. What a longer request has left there does not count for a shorter one.
#[test]
fn a_long_request_leaves_nothing_to_a_short_one() {
    let long = format!(
        "GET /ds1/ HTTP/1.1\r\nX: {}\r\n{}\r\n",
        "y".repeat(90),
        "Upgrade: x\r\n".repeat(9)
    );
    meet_all(|at| {
        for bytes in 18..34 {
            let short = format!("GET /{} HTTP/1.0\r\n\r\n", "x".repeat(bytes - 18));
            at.meets("long", &long, Outcome::Agent);
            at.meets(&short, &short, Outcome::Here(0));
            at.meets("long", &long, Outcome::Agent);
            at.meets("cut", &short[..bytes - 1], Outcome::Agent);
        }
    });
}

/// These packets are longer than the part of a packet that the door looks through.
#[test]
fn very_long_packets() {
    let head = |bytes: usize| format!("PUT /ds1/ HTTP/1.1\r\nContent-Length: {bytes}\r\n\r\n");
    let whole = head(20_000) + &"b".repeat(20_000);
    let part = head(30_000) + &"b".repeat(20_000);
    let cookie = format!(
        "GET /ds1/ HTTP/1.1\r\nCookie: {}\r\n\r\n",
        "c".repeat(17_000)
    );
    let shorter = format!(
        "GET /ds1/ HTTP/1.1\r\nCookie: {}\r\n\r\n",
        "c".repeat(16_000)
    );
    meet_all(|at| {
        at.meets("a body", &whole, Outcome::Here(0));
        at.meets("a part of a body", &part, Outcome::Here(10_000));
        at.meets("a head", &shorter, Outcome::Here(0));
        at.meets("a longer head", &cookie, Outcome::Agent);
    });
}

/// The TCP flags of a packet do not change what becomes of its request.
#[test]
fn every_flag() {
    const FLAGS: [(&str, &str); 5] = [
        ("none but ACK", "A"),
        ("congestion", "PAEC"),
        ("the client's last", "FPA"),
        // If the flag URG stayed, TCP would take a byte out of what the server reads.
        ("urgent data", "PAU"),
        ("urgent data and the last", "FPAU"),
    ];
    meet_all(|at| {
        for (name, flags) in FLAGS {
            for (target, outcome) in [
                ("/ds1/", Outcome::Here(0)),
                ("/ds2/", Outcome::Elsewhere),
                ("//", Outcome::Agent),
            ] {
                let text = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
                at.meets_packet(&format!("{name}, {target}"), outcome, |packet| {
                    packet.flags(flags).payload(text.as_str())
                });
            }
        }
    });
}
