//! Routes of a TLS service, by the names that its clients want.

use baton_abi::{HostKey, MAX_SERVICES, ROUTE_NUMBER_SHIFT, RouteKey};

use crate::prelude::*;

/// The pools to which the routes lead: data server 0's, and data server 1's.
pub const A: u16 = first_pool_of_one();
pub const B: u16 = A + 1;
/// Data server 2's pool, for a route that takes any name.
pub const C: u16 = A + 2;

/// The longest name that a route can have.
pub const LONGEST: &str = "lllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllll";

/// A name or a pattern, and the pool to which its route leads. The route's number is [`number`] of its place here.
pub const ROUTES: [(&str, u16); 6] = [
    ("www.example.org", A),
    ("*.example.org", B),
    ("other.test", B),
    ("*.other.test", A),
    ("*.deep.other.test", B),
    (LONGEST, B),
];

/// Names, and the places in [`ROUTES`] of the routes that take them.
pub const NAMES: &[(&str, usize)] = &[
    ("www.example.org", 0),
    ("WWW.EXAMPLE.ORG", 0),
    ("wWw.eXaMpLe.oRg", 0),
    ("a.example.org", 1),
    ("A.Example.ORG", 1),
    ("a.b.c.d.e.f.example.org", 1),
    ("w.www.example.org", 1),
    ("xwww.example.org", 1),
    ("www.example.org.example.org", 1),
    (".example.org", 1),
    ("*.example.org", 1),
    ("\u{fc}.example.org", 1),
    ("other.test", 2),
    ("Other.Test", 2),
    ("a.other.test", 3),
    ("a.b.other.test", 3),
    ("deep.other.test", 3),
    ("a.deep.other.test", 4),
    ("a.b.DEEP.other.test", 4),
    ("adeep.other.test", 3),
    (LONGEST, 5),
];

/// Names that none of these routes takes.
pub const OTHERS: &[&str] = &[
    "example.org",
    "badexample.org",
    "www.example.orgs",
    "www.example.org.evil.test",
    "example.org.www",
    "test",
    "ww.other.tes",
    "xother.test",
    "x",
    "10.77.0.100",
    "llllllllllllllllllllllllllllllllllllllllllllllllllllllllllllll",
    "llllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllll",
];

pub const fn number(index: usize) -> u16 {
    MAX_SERVICES as u16 + index as u16
}

/// Makes these the routes of this service, each with these flags. A connection that none of them takes goes to the pool
/// `any`, or to the service's own. Routes of paths are there as well, and count for nothing.
pub fn set(node: &Node, service: u16, any: Option<u16>, flags: u32) {
    let hosts = ROUTES.iter().zip(1..).map(|((pattern, _), host)| {
        let key = match pattern.strip_prefix("*.") {
            Some(suffix) => HostKey::below(suffix),
            None => HostKey::exact(pattern),
        };
        (key.unwrap(), host)
    });
    let hosts: Vec<_> = hosts.collect();
    let route = |host: u16, path: &[u8], index: usize, pool: u16| {
        let value = u32::from(number(index)) << ROUTE_NUMBER_SHIFT | u32::from(pool) | flags;
        (RouteKey::of(service, host, path).unwrap(), value)
    };
    let mut routes: Vec<_> = (ROUTES.iter().enumerate())
        .map(|(index, (_, pool))| route(index as u16 + 1, b"/", index, *pool))
        .collect();
    routes.extend(any.map(|pool| route(0, b"/", ROUTES.len(), pool)));
    routes.push(route(0, b"/ds2/", ROUTES.len() + 1, B));
    // A route of another service takes nothing.
    routes.push((RouteKey::of(service + 1, 0, b"/").unwrap(), u32::from(B)));
    node.routing().set_routes(&routes).unwrap();
    node.routing().set_hosts(&hosts).unwrap();
}

/// The pool to which these routes lead a client that wants this server; the pool `C` if none of them takes it.
pub fn pool_of(name: &str) -> u16 {
    let specific = ROUTES
        .iter()
        .filter(|(pattern, _)| match pattern.strip_prefix('*') {
            Some(suffix) => name.ends_with(suffix),
            None => name == *pattern,
        });
    let is_exact = |pattern: &str| !pattern.starts_with('*');
    let best = specific.max_by_key(|(pattern, _)| (is_exact(pattern), pattern.len()));
    best.map_or(C, |(_, pool)| *pool)
}
