//! Size classes: requests for large content have a pool of their own, unless a route takes them.

use std::collections::BTreeSet;

use baton_abi::{SERVICE_OWNER, SERVICE_PATHS, SERVICE_SIZES, Service, ServiceKey};
use baton_wire::{HashKey, PathHash};

use crate::{
    connection_server::http::{COLLIDED_WITHOUT_A_KEY, Connection, get, route},
    prelude::*,
    vectors::vectors,
};

/// Small content is the first data server's, large content the second's.
const SMALL: u16 = 0;
const LARGE: u16 = 1;

fn prepared(paths: &[&str]) -> Node {
    let node = Node::cs();
    let service = Service {
        id: HTTP_SERVICE,
        pool: first_pool_of_one() + SMALL,
        large: first_pool_of_one() + LARGE,
        flags: (SERVICE_OWNER | SERVICE_PATHS | SERVICE_SIZES) as u16,
    };
    set(&node, service);
    large(&node, paths);
    node
}

fn set(node: &Node, service: Service) {
    node.plane()
        .set_service(&ServiceKey::of(HTTP), &service)
        .unwrap();
}

fn large(node: &Node, paths: &[&str]) {
    let all: BTreeSet<_> = paths.iter().map(|path| entry(HTTP_SERVICE, path)).collect();
    node.routing().set_large(&all).unwrap();
}

fn entry(service: u16, path: &str) -> (u16, u64) {
    let hash = PathHash::of(key().hash_key(), path.as_bytes());
    (service, hash.unwrap().get())
}

#[track_caller]
fn owner(node: &Node, request: &str) -> u16 {
    let owner = Connection::open(node, request).entry(node).owner;
    // Whichever way the request was read, only these two may answer it.
    assert!(owner == SMALL || owner == LARGE, "{owner}");
    owner
}

/// A large path is recognised whatever its length, its query, the method and the host.
#[test]
fn a_large_path_and_no_other() {
    for length in 1..=PathHash::LONGEST {
        let path = format!("/{}", "p".repeat(length - 1));
        let node = prepared(&[&path]);
        for request in [
            get(&path),
            get(&format!("{path}?")),
            get(&format!("{path}?a=/b c")),
            format!("HEAD {path} HTTP/1.1\r\nHost: other\r\n\r\n"),
            format!("POST {path} HTTP/1.1\r\nContent-Length: 1\r\n\r\nx"),
        ] {
            assert_eq!(owner(&node, &request), LARGE, "{length}: {request:?}");
        }
        // With the root these targets would not be proper paths.
        if length == 1 {
            continue;
        }
        for request in [
            get(&format!("{path}p")),
            get(&format!("{path}/")),
            get(&format!("/x{path}")),
            get(&format!("{}q", &path[..length - 1])),
        ] {
            assert_eq!(owner(&node, &request), SMALL, "{length}: {request:?}");
        }
    }
}

/// The program computes the hashes of the golden vectors.
#[test]
fn hashes_are_those_of_the_vectors() {
    let node = prepared(&[]);
    // Without routes the program hashes a path as it is written, even if servers would read another one.
    node.change_flags(|flags| flags & !SERVICE_PATHS);
    for vector in vectors("path-hash", 7) {
        let path = vector.field("path");
        let output = u64::from_str_radix(vector.field("output"), 16).unwrap();
        node.change(|settings| settings.hash_key = vector.key("key"));
        for (hash, class) in [(output, LARGE), (output ^ 1, SMALL)] {
            let only = [(HTTP_SERVICE, hash)];
            node.routing().set_large(&only.into()).unwrap();
            assert_eq!(owner(&node, &get(path)), class, "{}", vector.name);
        }
    }
}

/// A client that does not know the key cannot make a path pass for a large one. These pairs would collide without a
/// key.
#[test]
fn paths_that_collided_without_a_key_do_not() {
    for [one, other] in COLLIDED_WITHOUT_A_KEY {
        let node = prepared(&[one]);
        assert_eq!(owner(&node, &get(one)), LARGE);
        assert_eq!(owner(&node, &get(other)), SMALL);
    }
}

/// The hashes of a node with another hash key match no path here.
#[test]
fn another_key_is_another_hash() {
    let node = prepared(&["/large"]);
    assert_eq!(owner(&node, &get("/large")), LARGE);
    node.change(|settings| settings.hash_key = HashKey::from_words([1, 2]).words());
    assert_eq!(owner(&node, &get("/large")), SMALL);
}

/// A path whose end the program does not see cannot be found in the set, so it counts as small.
#[test]
fn paths_that_are_too_long() {
    let longest = format!("/{}", "p".repeat(PathHash::LONGEST - 1));
    let node = prepared(&[&longest]);
    for more in [1, 2, 8, 100] {
        let path = format!("{longest}{}", "p".repeat(more));
        assert_eq!(owner(&node, &get(&path)), SMALL, "{more} more");
    }
}

/// A route takes its requests before the size classes do.
#[test]
fn routes_come_first() {
    let node = prepared(&["/large", "/held/large"]);
    let to_third = u32::from(first_pool_of_one() + 2);
    node.routing()
        .set_routes(&[(route(0, "/held/"), to_third)])
        .unwrap();
    let held = Connection::open(&node, get("/held/large"));
    assert_eq!(held.entry(&node).owner, 2);
    assert_eq!(owner(&node, &get("/large")), LARGE);
}

/// A path is not large if the service has no size classes, or if only another service lists it.
#[test]
fn only_where_it_is_wanted() {
    let node = prepared(&[]);
    let foreign = [entry(HTTP_SERVICE + 1, "/large")];
    node.routing().set_large(&foreign.into()).unwrap();
    assert_eq!(owner(&node, &get("/large")), SMALL);
    large(&node, &["/large"]);
    assert_eq!(owner(&node, &get("/large")), LARGE);
    set(
        &node,
        Service {
            id: HTTP_SERVICE,
            pool: first_pool_of_one() + SMALL,
            large: first_pool_of_one() + LARGE,
            flags: SERVICE_OWNER as u16,
        },
    );
    assert_eq!(owner(&node, &get("/large")), SMALL);
}

/// A new set replaces the old one. A path that is missing from it is small again, and one that stays is always found.
#[test]
fn sets_replace_each_other() {
    let node = prepared(&["/a", "/b"]);
    let owners = |paths: [&str; 3]| paths.map(|path| owner(&node, &get(path)));
    assert_eq!(owners(["/a", "/b", "/c"]), [LARGE, LARGE, SMALL]);
    large(&node, &["/b", "/c"]);
    assert_eq!(owners(["/a", "/b", "/c"]), [SMALL, LARGE, LARGE]);
    large(&node, &[]);
    assert_eq!(owners(["/a", "/b", "/c"]), [SMALL, SMALL, SMALL]);
}
