//! A dispatcher on another node: requests that it is asked about, and answers that are remembered.

use std::{collections::BTreeSet, time::Duration};

use baton_abi::{
    HostKey, NO_POOL, POLICY_CLIENT, ROUTE_PUNTS, SERVICE_ASKS, SERVICE_OWNER, SERVICE_PATHS,
    SERVICE_PUNTS, TCB_PUNTED,
};
use baton_dataplane::{Punt, Punts, Resumed};

use super::http::{ANSWER, COLLIDED_WITHOUT_A_KEY, Connection, get, route, to};
use crate::{
    cluster::{HTTP, HTTP_SERVICE, first_choice, first_pool_of_one, fresh_client},
    node::{Drop, Node, Tx},
    segment::{Client, Segment},
};

const A: u16 = first_pool_of_one();
/// Requests that no route takes: all three data servers.
const REST: u16 = HTTP_SERVICE;
const LONG: Duration = Duration::from_secs(3600);

/// A connection server that asks about its HTTP service. The judge has given a sign.
fn node() -> (Node, Punts) {
    let node = Node::fresh_cs();
    node.change_flags(|flags| flags | SERVICE_ASKS | SERVICE_PUNTS);
    let punts = node.plane().punts().unwrap();
    punts.give_sign(LONG).unwrap();
    (node, punts)
}

#[track_caller]
fn read_one(punts: &Punts) -> Punt {
    let mut all: Vec<_> = punts.wait(Duration::ZERO).unwrap().collect();
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn first(node: &Node, request: impl Into<Vec<u8>>) -> (Client, Segment) {
    let client = Client::of(HTTP);
    let cookie = node.cookie(&client);
    (client, client.get(cookie).payload(request))
}

/// What a request was asked under.
#[track_caller]
fn ask(node: &Node, punts: &Punts, request: impl Into<Vec<u8>>) -> Punt {
    let (client, segment) = first(node, request);
    punts.give_sign(LONG).unwrap();
    node.run(&segment.frame()).expect(Drop, &[("cs_punted", 1)]);
    assert_eq!(node.tcb(&client), None);
    read_one(punts)
}

#[test]
fn a_first_request_and_its_answer() {
    let (node, punts) = node();
    for owner in [2, 0, 1] {
        let (client, segment) = first(&node, get("/a"));
        node.run(&segment.frame()).expect(Drop, &[("cs_punted", 1)]);
        let punt = read_one(&punts);
        let key = punt.key.unwrap();
        assert_eq!((key.pool, key.client), (REST, 0));
        node.look();
        let resumed = punts.resume(&punt, to(REST), Some(owner)).unwrap();
        assert!(matches!(resumed, Resumed::Leaves(_)), "{resumed:?}");
        assert_eq!(node.moved().into_keys().collect::<Vec<_>>(), ["cs_adopt"]);
        let entry = node.tcb(&client).unwrap();
        assert_eq!((entry.owner, entry.pool), (owner, REST));
    }
}

/// Nobody, somebody who is not in the pool, and no index at all: the pool's own policy chooses.
#[test]
fn an_answer_of_no_use() {
    let (node, punts) = node();
    node.plane()
        .set_routes(&[(route(0, "/a"), A.into())])
        .unwrap();
    for owner in [None, Some(1), Some(200), Some(u16::MAX - 1)] {
        let (client, segment) = first(&node, get("/a"));
        node.run(&segment.frame()).expect(Drop, &[("cs_punted", 1)]);
        let punt = read_one(&punts);
        assert_eq!(punt.key.unwrap().pool, A);
        let resumed = punts.resume(&punt, to(A), owner).unwrap();
        assert!(matches!(resumed, Resumed::Leaves(_)), "{resumed:?}");
        let entry = node.tcb(&client).unwrap();
        assert_eq!((entry.owner, entry.pool), (0, A), "{owner:?}");
    }
}

#[test]
fn an_answer_is_remembered_while_it_is_good() {
    let (node, punts) = node();
    let key = ask(&node, &punts, get("/a?x")).key.unwrap();
    punts.remember(&key, 2, LONG).unwrap();
    // The query is not part of what is asked.
    for request in [get("/a"), get("/a?y=z"), get("/a?x")] {
        let (client, segment) = first(&node, request);
        let answered = [("cs_adopt", 1), ("cs_answered", 1)];
        node.run(&segment.frame()).expect(Tx, &answered);
        assert_eq!(node.tcb(&client).unwrap().owner, 2);
    }
    for other in [get("/b"), get("/a/"), get("/a").replace("10.77", "10.78")] {
        assert_ne!(ask(&node, &punts, other).key, Some(key));
    }
    // Who has left the pool is not chosen, nor after its time.
    punts.remember(&key, 200, LONG).unwrap();
    assert_eq!(ask(&node, &punts, get("/a")).key, Some(key));
    punts.remember(&key, 2, Duration::ZERO).unwrap();
    assert_eq!(ask(&node, &punts, get("/a")).key, Some(key));
}

/// One request has the answer of another only if somebody who knows the cluster's hash key made it so.
#[test]
fn no_two_requests_share_an_answer() {
    let (node, punts) = node();
    for [one, other] in COLLIDED_WITHOUT_A_KEY {
        let [one, other] = [one, other].map(|path| ask(&node, &punts, get(path)).key.unwrap());
        assert_ne!(one.hash, other.hash);
    }
    // Host and path are told apart.
    let with = |host: &str, path: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        ask(&node, &punts, request).key.unwrap().hash
    };
    let hashes = BTreeSet::from([
        with("a", "/a"),
        with("b", "/a"),
        with("a", "/b"),
        with("b", "/b"),
        with("ab", "/"),
        with("a", "/"),
    ]);
    assert_eq!(hashes.len(), 6);
    assert_eq!(with("a", "/a"), with("a", "/a"));
    assert_eq!(hashes.iter().filter(|hash| **hash & 1 == 0).count(), 0);
    let before = with("a", "/a");
    for word in 0..2 {
        node.change(|settings| settings.hash_key[word] ^= 1);
        assert_ne!(with("a", "/a"), before, "word {word}");
    }
}

/// Where the policy goes by the client, so does the answer.
#[test]
fn an_answer_for_a_client() {
    let (node, punts) = node();
    let mut pool = node.plane().pool(REST).unwrap();
    pool.policy = POLICY_CLIENT as u8;
    node.plane().set_pool(REST, &pool).unwrap();
    let mut clients = BTreeSet::new();
    for (host, seed) in [(1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (5, 1)] {
        node.change(|settings| settings.hash_seed ^= seed);
        let port = fresh_client().port();
        let from = std::net::SocketAddrV4::new([198, 51, 100, host].into(), port);
        let client = Client {
            address: from,
            ..Client::of(HTTP)
        };
        let segment = client.get(node.cookie(&client)).payload(get("/a"));
        node.run(&segment.frame()).expect(Drop, &[("cs_punted", 1)]);
        let key = read_one(&punts).key.unwrap();
        clients.insert(key.client);
        assert_eq!(key.pool, REST);
    }
    assert_eq!(clients.len(), 6);
}

/// A rule comes first: user space finds the pool, then asks. One verdict says both.
#[test]
fn a_rule_and_a_question() {
    let (node, punts) = node();
    let routes = [(route(0, "/asked/"), NO_POOL | ROUTE_PUNTS)];
    node.plane().set_routes(&routes).unwrap();
    let (client, segment) = first(&node, get("/asked/"));
    node.run(&segment.frame()).expect(Drop, &[("cs_punted", 1)]);
    let punt = read_one(&punts);
    assert_eq!(u32::from(punt.key.unwrap().pool), NO_POOL);
    node.look();
    punts.resume(&punt, None, Some(2)).unwrap();
    let moved: Vec<_> = node.moved().into_keys().collect();
    assert_eq!(moved, ["cs_adopt", "cs_punt_decided"]);
    let entry = node.tcb(&client).unwrap();
    assert_eq!((entry.owner, entry.pool), (2, REST));
}

/// Whose owner stays asks nobody; a request for another pool does, and only its answer changes the entry.
#[test]
fn a_further_request() {
    let (node, punts) = node();
    node.plane()
        .set_routes(&[(route(0, "/b/"), (A + 1).into())])
        .unwrap();
    let (client, segment) = first(&node, get("/a"));
    node.run(&segment.frame());
    punts.resume(&read_one(&punts), to(REST), Some(2)).unwrap();
    let end = segment.seq.wrapping_add(segment.payload.len() as u32);
    let mut connection = Connection {
        client,
        seq: end,
        ack: segment.ack.wrapping_add(ANSWER),
    };
    let stays = connection.data(get("/other"));
    let seen = connection.send(&node, &stays);
    assert_eq!(
        (seen.verdict, seen.counted.get("cs_request")),
        (Tx, Some(&1))
    );
    connection.ack += ANSWER;
    let before = connection.entry(&node);
    let moves = connection.data(get("/b/"));
    connection
        .send(&node, &moves)
        .expect(Drop, &[("cs_punted", 1)]);
    let asked = connection.entry(&node);
    let unchanged = baton_abi::Tcb {
        state: before.state,
        ..asked
    };
    assert_eq!(
        (unchanged, u32::from(asked.state) & TCB_PUNTED),
        (before, TCB_PUNTED)
    );
    let punt = read_one(&punts);
    assert_eq!(punt.key.unwrap().pool, A + 1);
    punts.resume(&punt, to(A + 1), Some(1)).unwrap();
    let entry = connection.entry(&node);
    assert_eq!((entry.pool, entry.owner, entry.previous), (A + 1, 1, 2));
}

/// Nobody is there to ask, and what is no request asks nothing.
#[test]
fn chosen_here() {
    let (node, punts) = node();
    node.change_flags(|flags| flags & !SERVICE_PATHS);
    let (client, segment) = first(&node, "SSH-2.0-x\r\n");
    let pinned = [("cs_adopt", 1), ("cs_pinned", 1)];
    node.run(&segment.frame()).expect(Tx, &pinned);
    assert!(node.tcb(&client).unwrap().owner < 3);
    node.change_flags(|flags| flags | SERVICE_PATHS);
    punts.give_sign(Duration::ZERO).unwrap();
    let (client, segment) = first(&node, get("/a"));
    let stale = [("cs_adopt", 1), ("cs_punt_stale", 1)];
    node.run(&segment.frame()).expect(Tx, &stale);
    assert!(node.tcb(&client).unwrap().owner < 3);
    // An empty pool is nobody's to ask about.
    punts.give_sign(LONG).unwrap();
    let mut pool = node.plane().pool(REST).unwrap();
    (pool.choices, pool.first_choice) = (0, first_choice(REST));
    node.plane().set_pool(REST, &pool).unwrap();
    let (_, segment) = first(&node, get("/a"));
    node.run(&segment.frame())
        .expect(Tx, &[("cs_unavailable", 1)]);
}

/// Where owners see to requests, the door of the data server asks that the connection comes to.
#[test]
fn where_owners_route_it_asks_nobody() {
    let (node, punts) = node();
    node.change_flags(|flags| flags | SERVICE_OWNER);
    let (client, segment) = first(&node, get("/a"));
    node.run(&segment.frame()).expect(Tx, &[("cs_adopt", 1)]);
    assert!(node.tcb(&client).unwrap().owner < 3);
    assert_eq!(punts.wait(Duration::ZERO).unwrap().count(), 0);
}

/// While its dispatcher counts as dead a service asks nobody, but for answers that it has; others do.
#[test]
fn a_dispatcher_that_is_left_alone() {
    let (node, punts) = node();
    let key = ask(&node, &punts, get("/known")).key.unwrap();
    punts.remember(&key, 2, LONG).unwrap();
    punts.rest(HTTP_SERVICE + 1, LONG).unwrap();
    ask(&node, &punts, get("/a"));
    punts.rest(HTTP_SERVICE, LONG).unwrap();
    for (target, counter) in [("/a", "cs_ask_dead"), ("/known", "cs_answered")] {
        let (_, segment) = first(&node, get(target));
        node.run(&segment.frame())
            .expect(Tx, &[("cs_adopt", 1), (counter, 1)]);
    }
    punts.rest(HTTP_SERVICE, Duration::ZERO).unwrap();
    ask(&node, &punts, get("/a"));
}

/// Whether or not routes name it.
#[test]
fn the_host_is_part_of_the_question() {
    let (node, punts) = node();
    let hosts = [(HostKey::exact("a.example").unwrap(), 1)];
    node.plane().set_hosts(&hosts).unwrap();
    let key = |host: &str| {
        let request = format!("GET /a HTTP/1.1\r\nHost: {host}\r\n\r\n");
        ask(&node, &punts, request).key.unwrap()
    };
    assert_eq!(key("a.example"), key("a.example"));
    assert_ne!(key("a.example"), key("b.example"));
}
