//! Rules: each condition, the order in which routes are tried, and the rules together with the table of routes.

mod conditions;
mod properties;
mod request;

use baton_core::{
    routes::{Host, Route},
    rules::{Conditions, Matcher, Request, Rules},
};
use regex::bytes::Regex;

/// Makes a route of service 0 for any host.
fn route(path: &str, pool: u16) -> Route<'_> {
    Route {
        service: 0,
        host: Host::Any,
        path: path.as_bytes(),
        is_conditional: false,
        pool,
    }
}

fn exactly(text: &str) -> Matcher {
    Matcher::Exactly(text.into())
}

fn regex(text: &str) -> Matcher {
    Matcher::Regex(Regex::new(text).unwrap().into())
}

fn method(name: &str) -> Conditions {
    Conditions {
        method: Some(exactly(name)),
        ..Conditions::default()
    }
}

fn read(text: &str) -> Request {
    Request::read(text.as_bytes()).unwrap().unwrap()
}

#[test]
fn conditions_are_asked_in_the_order_of_the_routes_and_plain_ones_last() {
    let long = Conditions {
        path: Some(Regex::new("long").unwrap().into()),
        ..Conditions::default()
    };
    let rules = Rules::new([
        (route("/a/", 9), Conditions::default()),
        (route("/", 1), method("PUT")),
        (route("/a/", 2), long.clone()),
        (route("/a/", 3), method("PUT")),
        (route("/a/", 4), method("PUT")),
        (route("/a/long/", 5), method("DELETE")),
    ]);
    for (request, pool) in [
        ("GET / HTTP/1.1", None),
        ("PUT / HTTP/1.1", Some(1)),
        ("PUT /a HTTP/1.1", Some(1)),
        ("GET /a/ HTTP/1.1", Some(9)),
        ("PUT /a/ HTTP/1.1", Some(3)),
        ("PUT /a/long HTTP/1.1", Some(2)),
        ("GET /a/long/ HTTP/1.1", Some(2)),
        ("DELETE /a/long/ HTTP/1.1", Some(5)),
    ] {
        let request = format!("{request}\r\nHost: a\r\n\r\n");
        assert_eq!(rules.pool(0, &read(&request)), pool, "{request}");
    }
    assert_eq!(rules.pool(1, &read("PUT / HTTP/1.1\r\n\r\n")), None);
}

/// Every other spelling of the same resource goes to the same pool.
#[test]
fn every_spelling_of_a_target_has_the_same_pool() {
    let www = Route {
        host: Host::Name("www.example.org"),
        ..route("/", 3)
    };
    let rules = Rules::new([
        (route("/ds1/", 1), Conditions::default()),
        (route("/ds2/", 2), Conditions::default()),
        (route("/a%3Fb/", 4), Conditions::default()),
        (www, Conditions::default()),
    ]);
    for (request, pool) in [
        ("GET //ds1/ HTTP/1.1|Host: a", Some(1)),
        ("GET /./ds1/ HTTP/1.1|Host: a", Some(1)),
        ("GET /x/../ds1/ HTTP/1.1|Host: a", Some(1)),
        ("GET /%64s1/ HTTP/1.1|Host: a", Some(1)),
        ("GET /ds1%2fa HTTP/1.1|Host: a", Some(1)),
        ("GET /ds2/../ds1/ HTTP/1.1|Host: a", Some(1)),
        ("GET /ds1/.. HTTP/1.1|Host: a", None),
        ("GET /ds1/. HTTP/1.1|Host: a", Some(1)),
        ("GET /ds1 HTTP/1.1|Host: a", None),
        ("GET /x?/../ds1/ HTTP/1.1|Host: a", None),
        ("GET /x#/../ds1/ HTTP/1.1|Host: a", None),
        ("GET /a%3fb/ HTTP/1.1|Host: a", Some(4)),
        ("GET /a?b/ HTTP/1.1|Host: a", None),
        ("GET http://a/ds1/ HTTP/1.1|Host: www.example.org", Some(1)),
        ("GET http://www.example.org/ds1/ HTTP/1.1|Host: a", Some(3)),
        ("GET HTTP://WWW.Example.Org.:80 HTTP/1.1|Host: a", Some(3)),
        ("GET http://a?/ds1/ HTTP/1.1|Host: a", None),
        ("||GET /ds1/ HTTP/1.1|Host: a", Some(1)),
        ("GET  /ds1/ HTTP/1.1|Host: a", Some(1)),
        ("get /ds1/ HTTP/1.1|Host: a", Some(1)),
        ("BASELINE-CONTROL /ds1/ HTTP/1.1|Host: a", Some(1)),
        ("GET / HTTP/1.1|Host: www.example.org.", Some(3)),
        ("GET / HTTP/1.1|Host: www.example.org.:80", Some(3)),
        ("OPTIONS * HTTP/1.1|Host: www.example.org", None),
        ("CONNECT a:443 HTTP/1.1|Host: www.example.org", None),
        ("CONNECT /ds1/x#a HTTP/1.1|Host: a", Some(1)),
    ] {
        let text = format!("{}\r\n\r\n", request.replace('|', "\r\n"));
        assert_eq!(rules.pool(0, &read(&text)), pool, "{request}");
    }
}

#[test]
fn a_more_specific_host_is_asked_first_whatever_its_path() {
    let of = |host, path, pool| Route {
        host,
        ..route(path, pool)
    };
    let rules = Rules::new([
        (of(Host::Any, "/a/b/", 1), Conditions::default()),
        (of(Host::Below("Example.org"), "/a/", 2), method("PUT")),
        (of(Host::Below("b.example.org"), "/a/", 3), method("PUT")),
        (of(Host::Name("A.b.example.org"), "/", 4), method("PUT")),
    ]);
    for (method, host, pool) in [
        ("GET", "a.b.example.org", 1),
        ("PUT", "a.b.example.org", 4),
        ("PUT", "A.B.Example.Org:8080", 4),
        ("PUT", "c.b.example.org", 3),
        ("PUT", "c.example.org", 2),
        ("PUT", "example.org", 1),
        ("PUT", "badexample.org", 1),
    ] {
        let request = read(&format!("{method} /a/b/ HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!(rules.pool(0, &request), Some(pool), "{method} {host}");
    }
}
