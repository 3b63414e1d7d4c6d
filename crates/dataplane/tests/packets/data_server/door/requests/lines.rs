//! Request lines: method, blanks and version.

use super::{Case, Odd, Plain, run};

const METHODS: &[Case] = &[
    ("GET", Plain, "GET /ds{}/ HTTP/1.1"),
    ("HEAD", Plain, "HEAD /ds{}/ HTTP/1.1"),
    ("OPTIONS", Plain, "OPTIONS /ds{}/ HTTP/1.1"),
    ("POST without a length", Plain, "POST /ds{}/ HTTP/1.1"),
    ("PUT", Plain, "PUT /ds{}/ HTTP/1.1"),
    ("PATCH", Plain, "PATCH /ds{}/ HTTP/1.1"),
    ("DELETE", Plain, "DELETE /ds{}/ HTTP/1.1"),
    ("TRACE", Plain, "TRACE /ds{}/ HTTP/1.1"),
    (
        "one that begins like another",
        Plain,
        "GETS /ds{}/ HTTP/1.1",
    ),
    ("eight letters", Plain, "PROPFIND /ds{}/ HTTP/1.1"),
    ("nine letters", Odd, "SUBSCRIBE /ds{}/ HTTP/1.1"),
    ("two letters", Odd, "GE /ds{}/ HTTP/1.1"),
    ("small letters", Odd, "get /ds{}/ HTTP/1.1"),
    ("one small letter", Odd, "GEt /ds{}/ HTTP/1.1"),
    ("a dash", Odd, "M-SEARCH /ds{}/ HTTP/1.1"),
    ("none", Odd, "/ds{}/ HTTP/1.1"),
    ("quotes", Odd, "\"GET\" /ds{}/ HTTP/1.1"),
];

const BLANKS: &[Case] = &[
    ("before the method", Odd, " GET /ds{}/ HTTP/1.1"),
    ("two behind the method", Odd, "GET  /ds{}/ HTTP/1.1"),
    ("a tab behind the method", Odd, "GET\t/ds{}/ HTTP/1.1"),
    ("two behind the target", Odd, "GET /ds{}/  HTTP/1.1"),
    ("a tab behind the target", Odd, "GET /ds{}/\tHTTP/1.1"),
    ("one in the target", Odd, "GET /ds{}/ x HTTP/1.1"),
    ("two versions", Odd, "GET /ds{}/ HTTP/1.1 HTTP/1.1"),
    ("behind the version", Odd, "GET /ds{}/ HTTP/1.1 "),
    ("a tab behind the version", Odd, "GET /ds{}/ HTTP/1.1\t"),
    ("an empty line before", Odd, "|GET /ds{}/ HTTP/1.1"),
    ("line feeds before", Odd, "\n\n\nGET /ds{}/ HTTP/1.1"),
    (
        "many empty lines before",
        Odd,
        "||||||||||GET /ds{}/ HTTP/1.1",
    ),
];

const VERSIONS: &[Case] = &[
    ("HTTP/1.0", Plain, " HTTP/1.0"),
    ("a later one", Plain, " HTTP/1.9"),
    ("HTTP/2.0", Odd, " HTTP/2.0"),
    ("HTTP/0.9 by its name", Odd, " HTTP/0.9"),
    ("none", Odd, ""),
    ("none behind a blank", Odd, " "),
    ("small letters", Odd, " http/1.1"),
    ("no minor number", Odd, " HTTP/1."),
    ("one number", Odd, " HTTP/1"),
    ("two digits", Odd, " HTTP/1.10"),
    ("a letter behind", Odd, " HTTP/1.1x"),
    ("a sign for a digit", Odd, " HTTP/1.:"),
    ("of something else", Odd, " HTTPS/1.1"),
];

#[test]
fn every_method() {
    run(METHODS, |line| format!("{line}|Host: a||"));
}

#[test]
fn every_blank_of_the_request_line() {
    run(BLANKS, |line| format!("{line}|Host: a||"));
}

#[test]
fn every_version() {
    run(VERSIONS, |version| {
        format!("GET /ds{{}}/{version}|Host: a||")
    });
}

/// A query says nothing about the path, but the door reads the version behind it all the same.
#[test]
fn every_version_behind_a_query() {
    run(VERSIONS, |version| {
        format!("GET /ds{{}}/?a=b{version}|Host: a||")
    });
}
