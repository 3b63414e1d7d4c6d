//! Checks each condition against requests that meet it and requests that do not.

use baton_core::rules::{Conditions, Matcher};
use regex::bytes::Regex;

use super::{exactly, read, regex};

fn check(conditions: &Conditions, cases: &[(&str, bool)]) {
    assert!(!conditions.is_empty());
    for (head, met) in cases {
        let request = read(&format!("{head}\r\n\r\n"));
        assert_eq!(conditions.are_met(&request), *met, "{head}");
    }
}

#[test]
fn none() {
    assert!(Conditions::default().is_empty());
    assert!(Conditions::default().are_met(&read("GET / HTTP/1.1\r\n\r\n")));
}

#[test]
fn the_path_up_to_its_query() {
    let conditions = Conditions {
        path: Some(Regex::new(r"^/item/\d+(\.json)?$").unwrap().into()),
        ..Conditions::default()
    };
    check(
        &conditions,
        &[
            ("GET /item/17 HTTP/1.1", true),
            ("GET /item/17?a=b HTTP/1.1", true),
            ("POST /item/17.json HTTP/1.1", true),
            ("GET /item/ HTTP/1.1", false),
            ("GET /item/17/x HTTP/1.1", false),
            ("GET /?/item/17 HTTP/1.1", false),
            ("GET /item/%31 HTTP/1.1", true),
            ("GET //item/x/../7 HTTP/1.1", true),
            ("GET /item/17%3fx HTTP/1.1", false),
        ],
    );
}

#[test]
fn the_method() {
    let of = |method: Matcher| Conditions {
        method: Some(method),
        ..Conditions::default()
    };
    check(
        &of(exactly("PUT")),
        &[
            ("PUT / HTTP/1.1", true),
            ("PUTT / HTTP/1.1", false),
            ("GET / HTTP/1.1", false),
        ],
    );
    check(
        &of(regex("^(PUT|DELETE)$")),
        &[("DELETE / HTTP/1.1", true), ("GET / HTTP/1.1", false)],
    );
}

#[test]
fn headers() {
    let conditions = Conditions {
        headers: vec![
            ("X-Beta".into(), exactly("yes")),
            ("User-Agent".into(), regex("(?i)mobile")),
        ],
        ..Conditions::default()
    };
    let both = "x-beta:  yes \r\nUSER-AGENT: a Mobile thing";
    check(
        &conditions,
        &[
            (&format!("GET / HTTP/1.1\r\n{both}"), true),
            (&format!("GET / HTTP/1.1\r\nX-Beta: no\r\n{both}"), true),
            ("GET / HTTP/1.1\r\nX-Beta: yes", false),
            (
                "GET / HTTP/1.1\r\nX-Beta: yess\r\nUser-Agent: mobile",
                false,
            ),
            (
                "GET / HTTP/1.1\r\nX-Betas: yes\r\nUser-Agent: mobile",
                false,
            ),
            ("GET /?X-Beta:%20yes HTTP/1.1\r\nUser-Agent: mobile", false),
            ("GET / HTTP/1.1", false),
            // What stands in the body is no header.
            (&format!("POST / HTTP/1.1\r\n\r\n{both}"), false),
        ],
    );
}

#[test]
fn cookies() {
    let conditions = Conditions {
        cookies: vec![("group".into(), exactly("b"))],
        ..Conditions::default()
    };
    check(
        &conditions,
        &[
            ("GET / HTTP/1.1\r\nCookie: group=b", true),
            ("GET / HTTP/1.1\r\nCookie: a=1; group=b; c=2", true),
            ("GET / HTTP/1.1\r\ncookie: a=1;group=b", true),
            ("GET / HTTP/1.1\r\nCookie: a=1\r\nCookie: group=b", true),
            ("GET / HTTP/1.1\r\nCookie: group=a; group=b", true),
            ("GET / HTTP/1.1\r\nCookie: Group=b", false),
            ("GET / HTTP/1.1\r\nCookie: subgroup=b", false),
            ("GET / HTTP/1.1\r\nCookie: group=bb", false),
            ("GET / HTTP/1.1\r\nCookie: group", false),
            ("GET / HTTP/1.1\r\nX: group=b", false),
        ],
    );
}

#[test]
fn parameters_of_the_query() {
    let conditions = Conditions {
        queries: vec![("v".into(), exactly("2")), ("debug".into(), regex(""))],
        ..Conditions::default()
    };
    check(
        &conditions,
        &[
            ("GET /?v=2&debug HTTP/1.1", true),
            ("GET /a?debug=1&x=y&v=2 HTTP/1.1", true),
            ("GET /?v=1&v=2&debug= HTTP/1.1", true),
            ("GET /?v=2 HTTP/1.1", false),
            ("GET /?v=%32&debug HTTP/1.1", false),
            ("GET /v=2&debug HTTP/1.1", false),
            ("GET /?vv=2&debug HTTP/1.1", false),
        ],
    );
}
