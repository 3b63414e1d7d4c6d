//! Targets: the door routes a path only if every server reads it as it stands.

use baton_abi::SERVICE_HOSTS;

use super::{Case, DataServer, Odd, Outcome, Plain, meet_all, run};
use crate::host::own_host;

const TARGETS: &[Case] = &[
    ("a query", Plain, "/ds{}/?a=b&c=%20"),
    ("a query that looks like a path", Plain, "/ds{}/?//x/../%00"),
    ("a dot", Plain, "/ds{}/x.y"),
    ("a dot before a slash", Plain, "/ds{}/x./y"),
    ("signs", Plain, "/ds{}/~x;y=1,2&z:b@c[d]'()*+-"),
    ("backslashes", Plain, "/ds{}/\\..\\"),
    ("letters beyond ASCII", Plain, "/ds{}/\u{e4}"),
    ("a length", Plain, "/ds{}/Content-Length:5"),
    ("two slashes before", Odd, "//ds{}/"),
    ("two slashes", Odd, "/ds{}//"),
    ("a dot segment before", Odd, "/./ds{}/"),
    ("a dot segment at the end", Odd, "/ds{}/."),
    ("a parent before", Odd, "/x/../ds{}/"),
    ("from another's path", Odd, "/ds1/../ds{}/"),
    ("a parent at the end", Odd, "/ds{}/.."),
    ("a parent before a query", Odd, "/ds{}/..?x"),
    ("a hidden file", Odd, "/ds{}/.x"),
    ("an escaped letter", Odd, "/%64s{}/"),
    ("an escaped slash", Odd, "/ds{}%2fx"),
    ("an escaped dot", Odd, "/ds{}/%2e%2e/x"),
    ("an escaped NUL", Odd, "/ds{}/%00"),
    ("half an escape", Odd, "/ds{}/%"),
    ("a fragment", Odd, "/ds{}/#x"),
    ("a fragment before", Odd, "/x#/../ds{}/"),
    ("absolute", Odd, "http://h/ds{}/"),
    ("absolute in capitals", Odd, "HTTP://h/ds{}/"),
    ("absolute without a path", Odd, "http://h?/ds{}/"),
    ("an authority", Odd, "ds{}:80"),
    ("the server itself", Odd, "*"),
    ("no slash before", Odd, "ds{}/"),
    ("a backslash before", Odd, "\\ds{}\\"),
    ("a query alone", Odd, "?/ds{}/"),
    ("a quote", Odd, "/ds{}/\""),
    ("an exclamation mark", Odd, "/ds{}/x!"),
    ("a dollar sign", Odd, "/ds{}/$"),
    ("a tab", Odd, "/ds{}/\tx"),
    ("a control character", Odd, "/ds{}/\u{1}"),
    ("DEL", Odd, "/ds{}/\u{7f}"),
];

#[test]
fn every_target() {
    run(TARGETS, |target| format!("GET {target} HTTP/1.1|Host: a||"));
}

#[test]
fn what_only_looks_like_a_route_is_anybody_s() {
    meet_all(|at| {
        for target in ["/", "/ds2", "/ds2?x/", "/DS2/", "/ds22/", "/x/ds2/"] {
            let text = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
            at.meets(target, text, Outcome::Here(0));
        }
    });
}

/// The door finds what is not plain at every offset in a word.
#[test]
fn what_is_not_plain_at_every_offset() {
    meet_all(|at| {
        for length in (0..9).chain([100, 487, 488]) {
            let x = "x".repeat(length);
            for (what, outcome) in [
                ("", Outcome::Elsewhere),
                ("?/../%", Outcome::Elsewhere),
                ("%", Outcome::Agent),
                ("#", Outcome::Agent),
                ("//", Outcome::Agent),
                ("/.", Outcome::Agent),
                ("\u{7f}", Outcome::Agent),
            ] {
                let target = format!("/ds2/{x}{what}y");
                let text = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
                at.meets(&target, text, outcome);
            }
        }
        let long = format!("/ds2/{}", "x".repeat(600));
        let text = format!("GET {long} HTTP/1.1\r\nHost: a\r\n\r\n");
        at.meets("a very long one", text, Outcome::Agent);
    });
}

/// Where any data server may answer any path, the door leaves it to the server here to read the target.
#[test]
fn without_routes_the_server_gets_any_target() {
    let _host = own_host();
    for flags in [0, SERVICE_HOSTS] {
        let mut at = DataServer::new(flags);
        for target in [
            "/ds2/",
            "//",
            "/../",
            "/%2e",
            "*",
            "http://h/",
            "/\u{7f}",
            "x",
        ] {
            let text = format!("GET {target} HTTP/1.1\r\nHost: a.test\r\n\r\n");
            at.meets(target, text, Outcome::Here(0));
        }
        let text = "\r\nGET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n";
        at.meets("two hosts", text, Outcome::Agent);
        at.meets(
            "a folded line",
            "GET / HTTP/1.1\r\nX: y\r\n z\r\n\r\n",
            Outcome::Agent,
        );
        at.meets(
            "no method",
            "get / HTTP/1.1\r\nHost: a\r\n\r\n",
            Outcome::Agent,
        );
        at.report();
    }
}
