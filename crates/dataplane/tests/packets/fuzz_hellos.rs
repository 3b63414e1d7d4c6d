//! ClientHellos, broken at random. If one packet decides by which name its connection goes, the connection server and
//! the door go by the same one, and whoever reads all of the ClientHello finds the same name in it.
//!
//! `BATON_FUZZ_RUNS` sets how many there are, and `BATON_FUZZ_SEED` which ones.

use std::collections::BTreeMap;

use baton_abi::SERVICE_TLS;
use baton_core::rules::ClientHello;
use fastrand::Rng;

use crate::{
    client_hello::{Hello, SERVER_NAME, UNKNOWN, names, record, sized},
    connection_server::routing::tls,
    fuzz::number,
    prelude::*,
    tls_routes::{self, A, B, C, LONGEST, pool_of},
};

const RUNS: u32 = 10_000;
const SEED: u64 = 0x7e11_0b0d;
/// The longest first data of a client that keeps to our MSS.
const LONGEST_FIRST: usize = 1348;
const NAMES: [&str; 14] = [
    "www.example.org",
    "WWW.Example.org",
    "a.example.org",
    "a.b.example.org",
    "other.test",
    "a.other.test",
    "a.deep.other.test",
    LONGEST,
    "example.org",
    "nobody.test",
    "www.example.org.",
    "www.example.org:443",
    "w ww.example.org",
    "",
];

/// The connection server and a data server of one TLS service. Each pool has one data server, and no pool but the
/// service's own is chosen if one packet does not decide.
struct Nodes {
    cs: Node,
    door: Node,
    _listener: std::net::TcpListener,
}

impl Nodes {
    fn new() -> Self {
        let door = Node::ds();
        for (address, mac) in [(CS, CS_MAC), (ds(1), ds_mac(1)), (ds(2), ds_mac(2))] {
            door.data_server().set_peer(address, &peer(mac)).unwrap();
        }
        owns(&door, SERVICE_TLS);
        tls_routes::set(&door, 0, Some(C), 0);
        Self {
            cs: tls::tls(Some(C)),
            door,
            _listener: listen(WEB),
        }
    }

    /// The pool that the connection server chooses; `None` if it goes by no name.
    fn by_cs(&self, first: &[u8]) -> Option<u16> {
        Some(tls::pool_of(&self.cs, first)).filter(|pool| *pool != HTTP_SERVICE)
    }

    /// The pool that the door of data server 0 chooses; `None` if it leaves that to the agent, which is not there. A
    /// test run makes no socket, so what is let in is dropped after that.
    fn by_door(&self, first: &[u8]) -> Option<u16> {
        let client = Client::fresh();
        let packet = client.ack(COOKIE).flags("PA").payload(first);
        let seen = self
            .door
            .run(&to_ds(&adopt(&client), self.door.now(), &packet.packet()));
        let counted = |name| seen.counted.contains_key(name);
        if counted("ds_door_handed_on") {
            let to = seen.packet().to();
            return [B, C].into_iter().find(|pool| ds(pool - A) == to);
        }
        assert_ne!(
            counted("ds_door_unreadable"),
            counted("ds_unassigned"),
            "{seen:?}"
        );
        counted("ds_unassigned").then_some(A)
    }
}

#[test]
fn all_go_by_the_same_name() {
    let _host = own_host();
    let nodes = Nodes::new();
    let seed = number("BATON_FUZZ_SEED").unwrap_or(SEED);
    let mut random = Rng::with_seed(seed);
    let mut met: BTreeMap<Option<u16>, u32> = BTreeMap::new();
    for run in 0..number("BATON_FUZZ_RUNS").unwrap_or(RUNS) {
        let first = broken(&mut random);
        let read = ClientHello::read(&first);
        let (by_cs, by_door) = (nodes.by_cs(&first), nodes.by_door(&first));
        let what = || format!("seed {seed}, run {run}: {read:?}, {first:02x?}");
        assert_eq!(by_cs, by_door, "{}", what());
        if let Some(pool) = by_door {
            let Some(hello) = &read else {
                panic!("pool {pool}, {}", what());
            };
            assert_eq!(pool, pool_of(hello.name()), "{}", what());
        }
        *met.entry(by_door).or_default() += 1;
    }
    let is_met = |pool| met.get(&pool).is_some_and(|times| *times > 100);
    assert!(
        [None, Some(A), Some(B), Some(C)].into_iter().all(is_met),
        "{met:?}"
    );
}

/// The beginning of a connection: a ClientHello, or what is left of one.
fn broken(random: &mut Rng) -> Vec<u8> {
    let hello = some_hello(random);
    let mut first = match random.u8(..8) {
        0 => hello.in_records(random.usize(1..200)),
        1 => [hello.whole(), some_bytes(random, 20)].concat(),
        2 => [hello.whole(), record(some_bytes(random, 20))].concat(),
        _ => hello.whole(),
    };
    for _ in 0..random.u8(..4) {
        damage(random, &mut first);
    }
    if random.u8(..4) == 0 {
        mend(&mut first);
    }
    first.truncate(LONGEST_FIRST);
    first
}

fn some_hello(random: &mut Rng) -> Hello {
    let mut hello = Hello::nameless();
    if random.bool() {
        hello = hello.with(UNKNOWN, some_bytes(random, 40));
    }
    for _ in 0..[0, 1, 1, 1, 1, 1, 1, 2][random.usize(..8)] {
        hello = hello.with(SERVER_NAME, some_names(random));
    }
    if random.u8(..8) == 0 {
        hello = hello.of_so_many(random.usize(60..70));
    }
    hello
}

fn some_names(random: &mut Rng) -> Vec<u8> {
    let name = *random.choice(&NAMES).unwrap();
    match random.u8(..16) {
        0 => names(&[]),
        1 => names(&[(random.u8(..2), name.as_bytes()), (0, b"other.test")]),
        2 => names(&[(0, &some_bytes(random, 12))]),
        3 => [names(&[(0, name.as_bytes())]), some_bytes(random, 3)].concat(),
        4 => sized(2, some_bytes(random, 12)),
        _ => names(&[(0, name.as_bytes())]),
    }
}

fn some_bytes(random: &mut Rng, most: usize) -> Vec<u8> {
    let bytes = random.usize(..=most);
    (0..bytes).map(|_| random.u8(..)).collect()
}

/// Changes something in bytes, of which there are some before and after that.
fn damage(random: &mut Rng, first: &mut Vec<u8>) {
    let at = random.usize(..first.len());
    match random.u8(..8) {
        0 => first.truncate(at + 1),
        1 => {
            let more = some_bytes(random, 8);
            first.splice(at..at, more);
        }
        2 if first.len() > at + 4 => drop(first.drain(at..at + random.usize(1..4))),
        3 => first[at] = first[at].wrapping_add(random.u8(..5)).wrapping_sub(2),
        4 => first[at] = *random.choice(b"\0\x01\x7f\x80\xff. :").unwrap(),
        5 => {
            // What is in front of the extensions matters more than the rest.
            let at = random.usize(..first.len().min(90));
            first[at] ^= 1 << random.u8(..8);
        }
        6 => {
            let other = some_hello(random).whole();
            let from = random.usize(..other.len());
            let to = random.usize(from..=other.len());
            let end = first.len().min(at + to - from);
            first.splice(at..end, other[from..to].iter().copied());
        }
        _ => first[at] ^= 1 << random.u8(..8),
    }
    if first.is_empty() {
        first.push(0x16);
    }
}

/// Writes the lengths of record, message and extensions that fit all these bytes, so that what is in them is read.
fn mend(first: &mut [u8]) {
    for (at, end) in [(3, 5), (7, 9), (84, 86)] {
        if first.len() > end {
            let length = (first.len() - end) as u16;
            first[at..end].copy_from_slice(&length.to_be_bytes());
        }
    }
}
