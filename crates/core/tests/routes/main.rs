//! Routes: the compiled tables, looked up as the program does it, are compared with the rule in plain code. In `rules`
//! the conditions of routes are tested.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod program;
mod properties;
mod rule;
mod rules;

use baton_core::routes::{Error, Host, MAX_ENTRIES, MAX_HOSTS, Route, RouteTable};
use program::Program;

/// Makes a route of service 0.
fn route<'a>(host: Host<'a>, path: &'a str, pool: u16) -> Route<'a> {
    Route {
        service: 0,
        host,
        path: path.as_bytes(),
        is_conditional: false,
        pool,
    }
}

/// Returns the pool that the program and the rule choose, and asserts that both choose the same.
fn pool(routes: &[Route<'_>], host: Option<&str>, target: &str) -> Option<u16> {
    let program = Program::new(&RouteTable::compile(routes).unwrap());
    let found = program.pool(0, host, target.as_bytes());
    assert_eq!(found, rule::pool(routes, 0, host, target.as_bytes()));
    found
}

#[test]
fn the_most_specific_host_with_a_matching_path_wins() {
    let routes = [
        route(Host::Any, "/static/", 1),
        route(Host::Below("example.org"), "/", 2),
        route(Host::Below("img.example.org"), "/large/", 3),
        route(Host::Name("a.img.example.org"), "/large/x/", 4),
        route(Host::Name("example.org"), "/shop", 5),
    ];
    let pool = |host, target| pool(&routes, Some(host), target);
    assert_eq!(pool("elsewhere", "/"), None);
    assert_eq!(pool("elsewhere", "/static/a"), Some(1));
    assert_eq!(pool("www.example.org", "/static/a"), Some(2));
    assert_eq!(pool("b.img.example.org", "/large/"), Some(3));
    assert_eq!(pool("b.img.example.org", "/static/"), Some(2));
    assert_eq!(pool("a.img.example.org", "/large/x/1"), Some(4));
    assert_eq!(pool("a.img.example.org", "/large/y"), Some(3));
    assert_eq!(pool("a.img.example.org", "/"), Some(2));
    // A wildcard covers the names below its own name, but not that name itself.
    assert_eq!(pool("example.org", "/"), None);
    assert_eq!(pool("example.org", "/shopping?q"), Some(5));
    assert_eq!(pool("badexample.org", "/"), None);
}

#[test]
fn case_and_port_of_a_host_mean_nothing() {
    let routes = [
        route(Host::Name("WWW.example.org"), "/", 1),
        route(Host::Below("example.org"), "/", 2),
    ];
    let pool = |host| pool(&routes, Some(host), "/");
    assert_eq!(pool("www.EXAMPLE.org:8080"), Some(1));
    assert_eq!(pool("Other.Example.Org:80"), Some(2));
    for odd in [
        "",
        ".",
        ":80",
        "[::1]:80",
        "example.org.",
        "[::ffff:192.0.2.1]",
    ] {
        assert_eq!(pool(odd), None, "{odd}");
    }
}

#[test]
fn a_request_without_a_host_is_for_any_host() {
    let routes = [
        route(Host::Any, "/a", 1),
        route(Host::Name("example.org"), "/a", 2),
    ];
    assert_eq!(pool(&routes, None, "/a"), Some(1));
    assert_eq!(pool(&routes, None, "*"), None);
}

#[test]
fn a_path_as_long_as_the_program_looks() {
    let path = "/".repeat(program::LONGEST_TARGET);
    let routes = [route(Host::Any, &path, 1), route(Host::Any, "/", 2)];
    assert_eq!(pool(&routes, None, &path), Some(1));
    assert_eq!(pool(&routes, None, &format!("{path}more")), Some(1));
    assert_eq!(pool(&routes, None, &path[1..]), Some(2));
}

#[test]
fn a_service_inherits_under_the_hosts_of_another() {
    let routes = [
        route(Host::Any, "/", 1),
        Route {
            service: 9,
            ..route(Host::Name("example.org"), "/", 2)
        },
    ];
    assert_eq!(pool(&routes, Some("example.org"), "/"), Some(1));
    let table = RouteTable::compile(&routes).unwrap();
    assert_eq!(
        Program::new(&table).pool(9, Some("else"), b"/"),
        None,
        "{table:?}"
    );
}

#[test]
fn tables_that_are_full_and_one_more() {
    let names: Vec<String> = (0..=MAX_HOSTS).map(|n| format!("h{n}")).collect();
    let hosts: Vec<_> = names
        .iter()
        .map(|name| route(Host::Name(name), "/", 1))
        .collect();
    let most = RouteTable::compile(&hosts[..MAX_HOSTS]).unwrap();
    assert_eq!(most.hosts.last().unwrap().number, 63);
    assert_eq!(
        RouteTable::compile(&hosts),
        Err(Error::TooManyHosts { hosts: 64 })
    );

    // There are 63 hosts, and requests without a known host. Each host has a path of its own and 127 inherited ones;
    // without a host there are all 128.
    let paths: Vec<String> = (0..128).map(|n| format!("/{n}/")).collect();
    let mut routes = hosts[..MAX_HOSTS].to_vec();
    for route in &mut routes {
        route.path = b"/1/";
    }
    routes.extend(paths.iter().map(|path| route(Host::Any, path, 2)));
    assert_eq!(
        RouteTable::compile(&routes).unwrap().entries.len(),
        MAX_ENTRIES
    );
    routes.push(route(Host::Name("h0"), "/more", 3));
    let error = RouteTable::compile(&routes).unwrap_err();
    assert_eq!(
        error.to_string(),
        "192 routes and 63 hosts make 8193 entries, the table of routes holds 8192, and each host \
         repeats the routes that it inherits from \"*.\" patterns and from routes without a host; \
         use fewer of these, or fewer hosts"
    );
}
