//! TLS connections go by the names that their clients want, as far as the first packet shows that. Each is the first of
//! a connection. What the connection server says is a hint: the door of the data server decides.

use baton_abi::{ROUTE_UNDECIDED, SERVICE_OWNER, SERVICE_REFUSES, SERVICE_TLS};
use baton_wire::Message;

use crate::{
    client_hello::{
        EXTENSIONS_MOST, Hello, NAME_MOST, PADDING, SERVER_NAME, UNKNOWN, names, undecided,
    },
    prelude::*,
    tls_routes::{self, A, B, C, NAMES, OTHERS, ROUTES},
};

/// The service's own pool.
const REST: u16 = HTTP_SERVICE;

/// The connection server of a TLS service with the routes of [`tls_routes`].
pub fn tls(any: Option<u16>) -> Node {
    let node = Node::cs();
    node.change_flags(|_| SERVICE_OWNER | SERVICE_TLS);
    tls_routes::set(&node, HTTP_SERVICE, any, 0);
    node
}

/// Begins a connection with these bytes, and asserts that they go as ADOPT to the data server that the entry names.
/// Returns the entry's pool.
#[track_caller]
pub fn pool_of(node: &Node, first: &[u8]) -> u16 {
    let client = Client::of(HTTP);
    let packet = client.get(node.cookie(&client)).payload(first);
    let seen = node.run(&packet.frame()).expect(Tx, &[("cs_adopt", 1)]);
    let entry = node.tcb(&client).unwrap();
    let adopts = sent(node, &seen);
    assert!(matches!(adopts.message, Message::Adopt { .. }));
    assert_eq!((adopts.from, adopts.to), (CS, ds(entry.owner)));
    assert_eq!(adopts.packet, packet.packet());
    if [A, B, C].contains(&entry.pool) {
        assert_eq!(entry.owner, entry.pool - A);
    }
    node.forget(&client);
    entry.pool
}

#[test]
fn every_name() {
    for (any, rest) in [(None, REST), (Some(C), C)] {
        let node = tls(any);
        for (name, index) in NAMES {
            let pool = pool_of(&node, &Hello::of(name).whole());
            assert_eq!(pool, ROUTES[*index].1, "{name}");
        }
        for name in OTHERS {
            assert_eq!(pool_of(&node, &Hello::of(name).whole()), rest, "{name}");
        }
        assert_eq!(pool_of(&node, &Hello::nameless().whole()), rest);
    }
}

/// If a name is longer than those of all routes, its end is enough.
#[test]
fn names_of_every_length() {
    let node = tls(Some(C));
    let x = "x".repeat(254);
    let suffixes = [
        ("example.org", B),
        ("other.test", A),
        ("deep.other.test", B),
        ("l.test", C),
    ];
    for length in 1..=238 {
        for (suffix, pool) in suffixes {
            let name = format!("{}.{suffix}", &x[..length]);
            assert_eq!(pool_of(&node, &Hello::of(&name).whole()), pool, "{name}");
        }
        let other = format!("www.example.org.{}", &x[..length]);
        assert_eq!(pool_of(&node, &Hello::of(&other).whole()), C, "{other}");
    }
    let longest = format!("{}.example.org", &x[..NAME_MOST - ".example.org".len()]);
    assert_eq!(pool_of(&node, &Hello::of(&longest).whole()), B);
}

/// The name is found whatever other extensions there are.
#[test]
fn the_name_anywhere() {
    let node = tls(Some(C));
    let name = names(&[(0, b"a.example.org")]);
    for fill in 0..40 {
        for behind in [0, fill] {
            let hello = Hello::nameless()
                .with(UNKNOWN, vec![0; fill])
                .with(SERVER_NAME, &name)
                .with(PADDING, vec![0; behind]);
            assert_eq!(pool_of(&node, &hello.whole()), B, "{fill} {behind}");
        }
    }
    for others in [3, EXTENSIONS_MOST - 1] {
        let last = Hello::nameless()
            .of_so_many(others)
            .with(SERVER_NAME, &name);
        assert_eq!(pool_of(&node, &last.whole()), B, "behind {others}");
        let first = Hello::of("a.example.org").of_so_many(others + 1);
        assert_eq!(pool_of(&node, &first.whole()), B, "before {others}");
    }
    let as_large_as_fits = Hello::of("a.example.org").of_bytes(1300);
    assert_eq!(pool_of(&node, &as_large_as_fits.whole()), B);
}

/// What comes behind the record in the packet does not matter, nor does the version of the record.
#[test]
fn what_is_around_a_hello() {
    let node = tls(Some(C));
    let whole = Hello::of("www.example.org").whole();
    for behind in [
        &b"\x17\x03\x03\0\x05early"[..],
        b"\x14\x03\x03\0\x01\x01",
        b"\0",
        b"GET / ",
    ] {
        assert_eq!(pool_of(&node, &[&whole, behind].concat()), A, "{behind:?}");
    }
    for version in 0..=4 {
        let whole = patched(whole.clone(), 2, &[version]);
        assert_eq!(pool_of(&node, &whole), A, "{version}");
    }
}

/// What the packet does not decide goes to the service's own pool, whatever routes there are.
#[test]
fn what_one_packet_does_not_decide() {
    let node = tls(Some(C));
    for name in ["www.example.org", "a.example.org"] {
        for (what, first) in undecided(name) {
            assert_eq!(pool_of(&node, &first), REST, "{what}, {name}");
        }
    }
}

/// Texts are read into the same buffer. What a longer one has left there does not count for one that is cut.
#[test]
fn a_whole_hello_leaves_nothing_to_one_that_is_cut() {
    let node = tls(Some(C));
    let whole = Hello::of("www.example.org").whole();
    for at in 1..whole.len() {
        assert_eq!(pool_of(&node, &whole), A);
        assert_eq!(pool_of(&node, &whole[..at]), REST, "{at}");
    }
}

/// A connection that is the agent's to decide goes to the service's own pool.
#[test]
fn what_the_agent_decides() {
    let node = tls(None);
    tls_routes::set(&node, HTTP_SERVICE, Some(C), ROUTE_UNDECIDED);
    for hello in [
        Hello::of("www.example.org"),
        Hello::of("x"),
        Hello::nameless(),
    ] {
        assert_eq!(pool_of(&node, &hello.whole()), REST);
    }
    tls_routes::set(&node, HTTP_SERVICE, None, 0);
    node.change_flags(|flags| flags | SERVICE_REFUSES);
    for hello in [Hello::of("x"), Hello::nameless()] {
        assert_eq!(pool_of(&node, &hello.whole()), REST);
    }
    assert_eq!(pool_of(&node, &Hello::of("www.example.org").whole()), A);
}

/// The ClientHello comes again as ADOPT to the same data server, also with more behind it.
#[test]
fn a_hello_that_comes_again() {
    let node = tls(None);
    let client = Client::of(HTTP);
    let first = client
        .get(node.cookie(&client))
        .payload(Hello::of("a.example.org").whole());
    node.run(&first.frame()).expect(Tx, &[("cs_adopt", 1)]);
    let more = first
        .clone()
        .payload([&first.payload[..], b"more"].concat());
    for again in [first, more] {
        let seen = node
            .run(&again.frame())
            .expect(Tx, &[("cs_adopt_again", 1)]);
        let adopts = sent(&node, &seen);
        assert_eq!((adopts.to, adopts.packet), (ds(1), again.packet()));
    }
}

/// No ClientHello is read where no door judges it, nor of a service that is not one of TLS.
#[test]
fn where_no_hello_is_read() {
    let node = tls(Some(C));
    for flags in [SERVICE_OWNER, SERVICE_TLS] {
        node.change_flags(|_| flags);
        assert_eq!(pool_of(&node, &Hello::of("www.example.org").whole()), REST);
    }
}
