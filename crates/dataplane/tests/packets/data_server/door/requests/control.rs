//! CR, LF and NUL where they do not belong: one server ends a line there, and another one does not.

use super::{Case, Odd, Outcome, meet_all, run};

/// Requests that the agent reads, behind "GET /ds1/" or "GET /ds2/".
const PLACES: &[(&str, &str)] = &[
    ("a CR in a value", " HTTP/1.1|X: a\rb||"),
    (
        "a CR before a header",
        " HTTP/1.1|X: a\rContent-Length: 5||",
    ),
    ("a CR in a name", " HTTP/1.1|X\ra: b||"),
    ("a CR for a dash", " HTTP/1.1|Content\rLength: 5||"),
    ("a CR before a name", " HTTP/1.1|Host: a|\rX: y||"),
    ("a CR in the query", "?a\rb HTTP/1.1|Host: a||"),
    ("a CR behind the version", " HTTP/1.1\rX: y|Host: a||"),
    ("two CR behind the version", " HTTP/1.1\r|Host: a||"),
    ("two CR behind a value", " HTTP/1.1|Host: a\r||"),
    ("two CR at the end", " HTTP/1.1|Host: a|\r|"),
    ("a CR for the last line", " HTTP/1.1|Host: a|\rx"),
    ("LF alone", " HTTP/1.1\nHost: a\n\n"),
    ("a LF behind the version", " HTTP/1.1\nHost: a||"),
    ("a LF behind a value", " HTTP/1.1|Host: a\nX: y||"),
    ("a LF before the last line", " HTTP/1.1|Host: a\n|"),
    ("a LF for the last line", " HTTP/1.1|Host: a|\n"),
    ("a LF in the query", "?a\nb HTTP/1.1|Host: a||"),
    ("a NUL in a value", " HTTP/1.1|X: a\0b||"),
    ("a NUL in a name", " HTTP/1.1|X\0: b||"),
    ("a NUL in the host", " HTTP/1.1|Host: a\0b||"),
    ("a NUL in the path", "\0 HTTP/1.1|Host: a||"),
    ("a NUL in the query", "?a\0b HTTP/1.1|Host: a||"),
    ("a NUL behind the version", " HTTP/1.1\0|Host: a||"),
    ("a NUL before the end", " HTTP/1.1|Host: a\0||"),
    ("a NUL in the last line", " HTTP/1.1|Host: a|\0|"),
];

#[test]
fn every_place() {
    let odd = |(name, rest): &(_, _)| (*name, Odd, *rest);
    let cases: Vec<Case> = PLACES.iter().map(odd).collect();
    run(&cases, |rest| format!("GET /ds{{}}/{rest}"));
}

/// The door finds a CR, LF or NUL that is out of place, and a blank before a colon, at every offset in a word. It does
/// not look at what is behind the head.
#[test]
fn every_offset() {
    meet_all(|at| {
        for length in 0..9 {
            let x = "x".repeat(length);
            for (line, outcome) in [
                ("", Outcome::Here(2)),
                ("\r", Outcome::Agent),
                ("\0", Outcome::Agent),
                ("\nX: y", Outcome::Agent),
                ("\r\nX : y", Outcome::Agent),
            ] {
                let name = format!("{line:?}, {length} bytes later");
                let head = format!("GET /ds1/{x} HTTP/1.1\r\nX: y{line}\r\nContent-Length: 9");
                at.meets(&name, head + "\r\n\r\n\0\r\r :\n\0", outcome);
            }
        }
    });
}
