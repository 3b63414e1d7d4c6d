//! Header lines other than those about host and body: with which of them servers may read a request in different ways.

use super::{Case, GoesOn, Odd, Plain, run};

const HEADERS: &[Case] = &[
    ("small letters in names", Plain, "host:a|accept:*/*"),
    ("no value", Plain, "Host: a|Accept:"),
    ("blanks around a value", Plain, "Host: a|X: \t y \t"),
    ("Content-Type", Plain, "Host: a|Content-Type: a/b"),
    ("Content-Encoding", Plain, "Content-Encoding: br|Host: a"),
    ("Connection", Plain, "Host: a|Connection: keep-alive"),
    ("the last one", Plain, "Host: a|Connection: close"),
    ("Expect", Plain, "Host: a|Expect: 100-continue"),
    (
        "Expect and a length",
        GoesOn(5),
        "Content-Length: 5|Expect: 100-continue",
    ),
    (
        "an insecure page",
        Plain,
        "Upgrade-Insecure-Requests: 1|Host: a",
    ),
    ("Upgrade", Odd, "Connection: upgrade|Upgrade: websocket"),
    ("Upgrade to HTTP/2", Odd, "Host: a|upgrade:h2c"),
    ("Upgrade of nothing", Odd, "Host: a|UPGRADE:"),
];

const FOLDS: &[Case] = &[
    ("with a blank", Odd, "Host: a|X: y| z"),
    ("with a tab", Odd, "Host: a|X: y|\tz"),
    ("with nothing behind", Odd, "Host: a|X: y| "),
    ("the first line", Odd, " X: y|Host: a"),
    ("Host", Odd, "Host:| a"),
];

const COLONS: &[Case] = &[
    ("a blank before", Odd, "Host: a|X : y"),
    ("a tab before", Odd, "Host: a|X\t: y"),
    ("blanks before", Odd, "Host: a|X  : y"),
    (
        "behind a long name",
        Odd,
        "Host: a|X-Name-That-Is-Longer-Than-Most-Names-Are : y",
    ),
    ("at the very end", Odd, "Host: a|X :"),
];

#[test]
fn every_header() {
    run(HEADERS, with_lines);
}

#[test]
fn folded_lines() {
    run(FOLDS, with_lines);
}

#[test]
fn blanks_before_a_colon() {
    run(COLONS, with_lines);
}

fn with_lines(lines: &str) -> String {
    format!("GET /ds{{}}/ HTTP/1.1|{lines}||")
}
