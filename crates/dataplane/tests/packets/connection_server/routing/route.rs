//! Routes: by host, then by the longest path. Each request is the first of a connection; the entry says
//! which pool it was routed to.

use baton_abi::{HostKey, PATH_BYTES, RouteKey, SERVICE_HOSTS, SERVICE_PATHS};

use crate::connection_server::http::{Connection, get, route};
use crate::{
    cluster::{HTTP_SERVICE, first_pool_of_one},
    node::Node,
};

/// The pool of requests that no route takes.
const REST: u16 = HTTP_SERVICE;
const A: u16 = first_pool_of_one();
const B: u16 = A + 1;
const C: u16 = A + 2;

#[test]
fn the_longest_path() {
    let node = Node::cs();
    set_routes(
        &node,
        &[
            (0, "/s", A),
            (0, "/static/", B),
            (0, "/static/img/", C),
            (0, "/exact ", C),
        ],
    );
    for (target, pool) in [
        ("/", REST),
        ("/other", REST),
        ("/S", REST),
        ("/s", A),
        ("/so", A),
        ("/static", A),
        ("/static?x=/img/", A),
        ("/static/", B),
        ("/static/img", B),
        ("/static/image", B),
        ("/static/img/", C),
        ("/static/img/a/b.png", C),
        ("/exact", C),
        ("/exact/not", REST),
    ] {
        assert_eq!(pool_of(&node, &get(target)), pool, "{target}");
    }
}

/// The path is found behind a method of any length, also behind one whose connection may not move.
#[test]
fn every_method() {
    let node = Node::cs();
    set_routes(&node, &[(0, "/a/", A)]);
    for method in [
        "GET", "HEAD", "OPTIONS", "PUT", "POST", "PATCH", "DELETE", "PROPFIND",
    ] {
        let request = format!("{method} /a/ HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(pool_of(&node, &request), A, "{method}");
    }
}

/// A request's head may come in several segments: the first one has the path and the host.
#[test]
fn half_a_request_is_routed() {
    let node = Node::cs();
    hosts(&node);
    set_routes(&node, &[(0, "/a/", A), (1, "/a/", B)]);
    for (request, pool) in [
        ("GET /a/ HTTP/1.1\r\nHost: www.example.org\r\nCookie: ", B),
        ("GET /a/ HTTP/1.1\r\nHost: www.example.org\r\n", B),
        ("GET /a/?and/so/on HTTP/1.1\r\nHost: www.example.org\r\n", B),
    ] {
        assert_eq!(pool_of(&node, request), pool, "{request:?}");
    }
}

/// Targets as long as a route can be, and of lengths around that.
#[test]
fn targets_of_every_length() {
    let longest = PATH_BYTES as usize;
    let node = Node::cs();
    let path = |bytes: usize| format!("/{}", "x".repeat(bytes - 1));
    let (half, whole) = (path(longest / 2), path(longest));
    set_routes(&node, &[(0, "/", A), (0, &half, B), (0, &whole, C)]);
    for bytes in 1..=200 {
        let pool = match bytes {
            _ if bytes < half.len() => A,
            _ if bytes < whole.len() => B,
            _ => C,
        };
        assert_eq!(pool_of(&node, &get(&path(bytes))), pool, "{bytes} bytes");
    }
    // A path that differs from a route only in its last byte does not match it.
    let other = format!("{}y", path(longest - 1));
    assert_eq!(pool_of(&node, &get(&other)), B);
}

/// An exact name goes before a pattern, and a pattern before the routes of any host.
#[test]
fn the_host() {
    let node = Node::cs();
    hosts(&node);
    set_routes(
        &node,
        &[
            (0, "/", A),
            (1, "/", B),
            (2, "/", C),
            (3, "/", B),
            (4, "/", C),
        ],
    );
    let sixty_three = "h".repeat(63);
    let long = "l".repeat(200);
    let cases = [
        ("www.example.org", B),
        ("WWW.Example.ORG", B),
        ("www.example.org:83", B),
        ("www.example.org:", B),
        ("a.example.org", C),
        ("a.b.example.org", C),
        ("w.www.example.org", C),
        ("xwww.example.org", C),
        ("www.example.org.example.org", C),
        ("a.example.org:8080", C),
        // A pattern matches neither the name itself nor a name that only ends like it.
        ("example.org", A),
        ("badexample.org", A),
        ("www.example.orgs", A),
        ("www.example.org.evil.org", A),
        ("[fd77::100]:83", A),
        ("10.77.0.100", B),
        ("10.77.0.10", A),
        ("110.77.0.100", A),
        (&sixty_three, C),
        (&sixty_three[1..], A),
    ];
    for (host, pool) in cases {
        assert_eq!(pool_of(&node, &at(host)), pool, "{host}");
    }
    for length in [1, 50, 63, 64, 100, 190] {
        let below = format!("{}.example.org", &long[..length]);
        assert_eq!(pool_of(&node, &at(&below)), C, "{below}");
        let begins_alike = format!("www.example.org.{}", &long[..length]);
        assert_eq!(pool_of(&node, &at(&begins_alike)), A, "{begins_alike}");
        let other = format!("{}{sixty_three}", &long[..length]);
        assert_eq!(pool_of(&node, &at(&other)), A, "{other}");
    }
}

/// The forms that a Host line may have.
#[test]
fn the_host_line() {
    let node = Node::cs();
    hosts(&node);
    set_routes(&node, &[(0, "/", A), (1, "/", B)]);
    for (lines, pool) in [
        ("Host: www.example.org", B),
        ("Host:www.example.org", B),
        ("Host:   www.example.org", B),
        ("Host: www.example.org ", B),
        ("HOST: www.example.org", B),
        ("host: www.example.org", B),
        ("Accept: */*\r\nHost: www.example.org\r\nX: y", B),
        ("Host: other\r\nX-Host: www.example.org", A),
        ("Host : www.example.org", A), // servers refuse it
        ("Hosts: www.example.org", A),
        ("X: www.example.org", A),
    ] {
        let request = format!("GET / HTTP/1.1\r\n{lines}\r\n\r\n");
        assert_eq!(pool_of(&node, &request), pool, "{lines}");
    }
    assert_eq!(pool_of(&node, "GET / HTTP/1.0\r\n\r\n"), A);
}

/// The Host header is found at every offset from a word's beginning.
#[test]
fn the_host_anywhere() {
    let node = Node::cs();
    hosts(&node);
    set_routes(&node, &[(0, "/", A), (1, "/", B)]);
    for filler in 0..64 {
        let x = "x".repeat(filler);
        let request = format!("GET /{x} HTTP/1.1\r\nHost: www.example.org\r\n\r\n");
        assert_eq!(pool_of(&node, &request), B, "{filler}");
        let behind = format!("GET / HTTP/1.1\r\nX: {x}\r\nHost: www.example.org\r\n\r\n");
        assert_eq!(pool_of(&node, &behind), B, "{filler}");
    }
    // The Host header is found up to the end of the largest segment.
    let x = "x".repeat(1300);
    let far = format!("GET / HTTP/1.1\r\nX: {x}\r\nHost: www.example.org\r\n\r\n");
    assert_eq!(pool_of(&node, &far), B);
}

/// A host has only its own paths. The paths of any host count for it only if they were written there, too.
#[test]
fn paths_of_a_host() {
    let node = Node::cs();
    hosts(&node);
    set_routes(
        &node,
        &[(0, "/any/", A), (1, "/own/", B), (1, "/own/more/", C)],
    );
    for (target, host, pool) in [
        ("/any/", "other", A),
        ("/own/", "other", REST),
        ("/own/", "www.example.org", B),
        ("/own/more/", "www.example.org", C),
        ("/any/", "www.example.org", REST),
    ] {
        let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert_eq!(pool_of(&node, &request), pool, "{target} of {host}");
    }
}

/// The program looks up only what the service's flags say that it has.
#[test]
fn services_without_hosts_or_paths() {
    let node = Node::cs();
    hosts(&node);
    set_routes(&node, &[(0, "/", A), (1, "/", B)]);
    let request = at("www.example.org");
    assert_eq!(pool_of(&node, &request), B);
    node.change_flags(|flags| flags & !SERVICE_HOSTS);
    assert_eq!(pool_of(&node, &request), A);
    node.change_flags(|flags| flags & !SERVICE_PATHS);
    assert_eq!(pool_of(&node, &request), REST);
}

/// A service does not use another service's routes.
#[test]
fn routes_are_a_services_own() {
    let node = Node::cs();
    let others: Vec<_> = [0, 3, 5, HTTP_SERVICE | 0x100]
        .map(|service| (RouteKey::of(service, 0, b"/").unwrap(), u32::from(A)))
        .into();
    node.routing().set_routes(&others).unwrap();
    assert_eq!(pool_of(&node, &get("/")), REST);
}

#[test]
fn routes_change_while_they_are_used() {
    let node = Node::cs();
    for pool in [A, B, C] {
        set_routes(&node, &[(0, "/a/", pool)]);
        assert_eq!(pool_of(&node, &get("/a/b")), pool);
    }
    set_routes(&node, &[]);
    assert_eq!(pool_of(&node, &get("/a/b")), REST);
}

/// `www.example.org` is host 1, `*.example.org` host 2, the node's own address host 3, and the longest possible name
/// 4.
fn hosts(node: &Node) {
    let hosts = [
        (HostKey::exact("www.example.org").unwrap(), 1),
        (HostKey::below("example.org").unwrap(), 2),
        (HostKey::exact("10.77.0.100").unwrap(), 3),
        (HostKey::exact(&"h".repeat(63)).unwrap(), 4),
    ];
    node.routing().set_hosts(&hosts).unwrap();
}

fn set_routes(node: &Node, routes: &[(u16, &str, u16)]) {
    let routes: Vec<_> = routes
        .iter()
        .map(|(host, path, pool)| (route(*host, path), u32::from(*pool)))
        .collect();
    node.routing().set_routes(&routes).unwrap();
}

#[track_caller]
fn pool_of(node: &Node, request: &str) -> u16 {
    Connection::open(node, request).entry(node).pool
}

fn at(host: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")
}
