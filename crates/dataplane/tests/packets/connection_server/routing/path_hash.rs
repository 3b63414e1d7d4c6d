//! A pool whose policy goes by path: a path always goes to the same data server, whatever client asks for it, and
//! how.

use std::collections::BTreeMap;

use baton_abi::Pool;

use crate::connection_server::http::{Connection, get, route};
use crate::node::Node;

/// The pool whose policy goes by path.
const POOL: u16 = 5;

fn prepared() -> Node {
    let node = Node::cs();
    let routes = [(route(0, "/"), POOL.into())];
    node.routing().set_routes(&routes).unwrap();
    node
}

#[test]
fn the_same_path_is_the_same_data_server() {
    let node = prepared();
    for number in 0..40 {
        let path = format!("/{}{number}", "x".repeat(number * 5));
        let owner = owner_of(&node, &get(&path));
        for request in [
            get(&path),
            get(&format!("{path}?a=b")),
            get(&format!("{path}?{}", "q".repeat(number * 7))),
            get(&format!("{path}?")),
            format!("HEAD {path} HTTP/1.1\r\nHost: other\r\nX: y\r\n\r\n"),
            format!("OPTIONS {path} HTTP/1.0\r\n\r\n"),
            format!("POST {path} HTTP/1.1\r\nContent-Length: 1\r\n\r\nx"),
            format!("PROPFIND {path}?c HTTP/1.1\r\nHost: a\r\n\r\n"),
        ] {
            assert_eq!(owner_of(&node, &request), owner, "{request:?}");
        }
    }
}

/// Each gets a third on average; with less than half of that the hash would not spread.
#[test]
fn paths_are_spread() {
    let node = prepared();
    let families: [(&str, fn(usize) -> String); 5] = [
        ("numbers", |n| format!("/{n}")),
        ("files", |n| format!("/files/{n:06}.html")),
        ("lengths", |n| format!("/{}", "x".repeat(n % 119))),
        ("far behind", |n| format!("/{}{n:03}", "x".repeat(100))),
        ("folders", |n| format!("/{n}/index.html")),
    ];
    for (name, family) in families {
        let mut owners = BTreeMap::new();
        for number in 0..300 {
            let owner = owner_of(&node, &get(&family(number)));
            *owners.entry(owner).or_insert(0) += 1;
        }
        assert!(
            owners.len() == 3 && owners.values().all(|&n| n > 50),
            "{name}: {owners:?}"
        );
    }
}

/// With the same choices and seed, another connection server makes the same choices. Another seed makes others.
#[test]
fn a_hash_is_the_same_everywhere_and_another_with_another_seed() {
    let (one, other) = (prepared(), prepared());
    let owners = |node: &Node| -> Vec<u16> {
        (0..40)
            .map(|number| owner_of(node, &get(&format!("/{number}"))))
            .collect()
    };
    assert_eq!(owners(&one), owners(&other));
    let pool = one.routing().pool(POOL).unwrap();
    let reseeded = Pool {
        hash_seed: pool.hash_seed + 1,
        ..pool
    };
    one.routing().set_pool(POOL, &reseeded).unwrap();
    assert_ne!(owners(&one), owners(&other));
}

/// A client that does not know the cluster's hash key cannot know which data server a path belongs to.
#[test]
fn another_key_is_another_hash() {
    let (one, same, other) = (prepared(), prepared(), prepared());
    let owners = |node: &Node| -> Vec<u16> {
        (0..60)
            .map(|number| owner_of(node, &get(&format!("/{}{number}", "x".repeat(number * 2)))))
            .collect()
    };
    let before = owners(&one);
    assert_eq!(before, owners(&same));
    for word in 0..2 {
        other.change(|settings| settings.hash_key[word] ^= 1);
        let after = owners(&other);
        let moved = before.iter().zip(&after).filter(|(a, b)| a != b).count();
        // Two thirds of the paths move on average.
        assert!((20..60).contains(&moved), "word {word}: {moved}");
        assert_eq!(after, owners(&other));
    }
}

/// Requests without a path to hash go to the data servers in turn.
#[test]
fn without_a_path() {
    let node = prepared();
    let key = baton_abi::ServiceKey::of(crate::cluster::HTTP);
    let service = baton_abi::Service {
        id: crate::cluster::HTTP_SERVICE,
        pool: POOL,
        flags: baton_abi::SERVICE_OWNER as u16,
        ..baton_abi::Service::default()
    };
    node.plane().set_service(&key, &service).unwrap();
    let mut owners: Vec<u16> = (0..6)
        .map(|_| owner_of(&node, "no request at all"))
        .collect();
    owners.sort_unstable();
    assert_eq!(owners, [0, 0, 1, 1, 2, 2]);
}

#[track_caller]
fn owner_of(node: &Node, request: &str) -> u16 {
    Connection::open(node, request).entry(node).owner
}
