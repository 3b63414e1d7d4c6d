//! Keys of tickets in virtual time.

use std::net::Ipv4Addr;

use proptest::prelude::*;

use crate::ticket_keys::{LIFETIME, NodeKeys, SPREADS, TicketKeyRing};

const HOUR: u64 = 60 * 60;
const NOON: u64 = 1_800_000_000;
const LENGTH: usize = 48;
/// The time between two looks of a process for old keys. In fact it is shorter.
const LOOK: u64 = 300;

/// A key as bytes.
fn key(number: u8, made: u64) -> Vec<u8> {
    [&[number; 8][..], &made.to_be_bytes(), &[number; 32]].concat()
}

fn keys(keys: &[(u8, u64)]) -> NodeKeys {
    let bytes: Vec<_> = keys
        .iter()
        .map(|(number, made)| key(*number, *made))
        .collect();
    NodeKeys::read(&bytes.concat()).unwrap()
}

fn node(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(192, 0, 2, last)
}

fn numbers(ring: &TicketKeyRing) -> Vec<u8> {
    ring.all().map(|key| key.number()[0]).collect()
}

fn copy(ring: &TicketKeyRing) -> TicketKeyRing {
    let mut text = Vec::new();
    ring.write_to(&mut text);
    TicketKeyRing::read(&text).unwrap()
}

#[test]
fn a_key_is_known_for_its_time() {
    for (made, is_known) in [
        (NOON, true),
        (NOON - 18 * HOUR + 1, true),
        (NOON - 18 * HOUR, false),
        (0, false),
        // Of a data server whose clock is fast.
        (NOON + HOUR, true),
        (NOON + HOUR + 1, false),
        (u64::MAX, false),
    ] {
        let mut ring = TicketKeyRing::default();
        assert_eq!(ring.hear(node(1), keys(&[(1, made)]), NOON), is_known);
        assert_eq!(numbers(&ring).len(), usize::from(is_known), "{made}");
        // It would be there after its time if nobody forgot it.
        let mut ring = TicketKeyRing::default();
        let before = made.min(NOON + HOUR);
        ring.hear(node(1), keys(&[(1, before)]), before);
        assert_eq!(ring.forget(NOON), before + 18 * HOUR <= NOON, "{made}");
    }
}

#[test]
fn the_newest_keys_of_each_node_are_known() {
    let mut ring = TicketKeyRing::default();
    for number in 1..=20 {
        let key = keys(&[(number, NOON + u64::from(number % 7))]);
        ring.hear(node(number % 2), key, NOON);
    }
    // 6 and 13 are the newest, and 20 is the newest of even ones.
    assert_eq!(
        numbers(&ring),
        [20, 6, 12, 18, 4, 10, 16, 2, 13, 19, 5, 11, 17, 3, 9, 15]
    );
    let one = keys(&[(13, NOON + 6)]);
    assert!(!ring.hear(node(1), one, NOON), "it is known");
    assert!(
        !ring.hear(node(1), keys(&[(30, NOON - 1)]), NOON),
        "it is too old"
    );
}

#[test]
fn a_key_encrypts_for_its_time() {
    let mut ring = TicketKeyRing::default();
    ring.hear(node(1), keys(&[(9, NOON)]), NOON);
    assert!(
        ring.encrypting(NOON).is_none(),
        "no other node's key encrypts"
    );
    let encrypting = |ring: &TicketKeyRing, now| ring.encrypting(now).unwrap().number();
    assert!(ring.renew(NOON));
    let first = encrypting(&ring, NOON);
    assert!(!ring.renew(NOON + 6 * HOUR - 1));
    let renewed = NOON + 6 * HOUR;
    assert!(ring.renew(renewed) && !ring.renew(renewed));
    // The other nodes are to know the next one first.
    assert_eq!(encrypting(&ring, renewed + 29), first);
    assert_ne!(encrypting(&ring, renewed + 30), first);
    // A process that takes over goes on with the key.
    let mut next = TicketKeyRing::default();
    next.merge(copy(&ring), renewed + 60);
    assert!(!next.renew(renewed + 60));
    assert_eq!(
        encrypting(&next, renewed + 60),
        encrypting(&ring, renewed + 60)
    );
    // After a clock has been set back, the keys of the future are forgotten.
    let before = NOON - 2 * HOUR;
    assert!(next.forget(before) && next.renew(before));
    assert_eq!(next.own().unwrap().write()[8..16], before.to_be_bytes());
}

#[test]
fn what_is_no_list_of_keys_is_refused() {
    let list = [key(1, NOON), key(2, NOON)].concat();
    for length in 0..list.len() {
        assert_eq!(
            NodeKeys::read(&list[..length]).is_some(),
            length % LENGTH == 0
        );
    }
    assert!(NodeKeys::read(&key(1, NOON).repeat(8)).is_some());
    assert!(NodeKeys::read(&key(1, NOON).repeat(9)).is_none());

    let mut ring = TicketKeyRing::default();
    ring.hear(node(1), keys(&[(1, NOON)]), NOON);
    ring.hear(TicketKeyRing::OWN, keys(&[(2, NOON), (3, NOON)]), NOON);
    let mut text = Vec::new();
    ring.write_to(&mut text);
    assert_eq!(numbers(&copy(&ring)), [3, 2, 1]);
    let own = 5 + 2 * LENGTH;
    for length in 0..text.len() {
        let is_whole = [0, own].contains(&length);
        assert_eq!(TicketKeyRing::read(&text[..length]).is_some(), is_whole);
    }
    assert!(
        TicketKeyRing::read(&text.repeat(2)).is_none(),
        "a node twice"
    );
    assert!(
        TicketKeyRing::read(&[0; 5]).is_none(),
        "a node without keys"
    );
    let many = [&[0, 0, 0, 1, 9][..], &key(1, NOON).repeat(9)].concat();
    assert!(TicketKeyRing::read(&many).is_none());
}

#[test]
fn nodes_without_end_are_not_known() {
    let mut ring = TicketKeyRing::default();
    for number in 0..2000 {
        ring.hear(Ipv4Addr::from(number), keys(&[(1, NOON)]), NOON);
    }
    assert_eq!(numbers(&ring).len(), 512);
    assert_eq!(numbers(&copy(&ring)).len(), 512);
}

/// One event of a cluster's life.
#[derive(Clone, Debug)]
enum Event {
    /// Time passes, and each process looks after its keys.
    Pass(u64),
    /// What a node's process knows reaches its daemon, that the other nodes, and their processes.
    Tell(usize),
    /// A node's process dies. The next one begins with what the daemon knows.
    KillProcess(usize),
    /// A node's daemon dies. The next one hears all from the process and from other nodes.
    KillDaemon(usize),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (1..3 * HOUR).prop_map(Event::Pass),
        1 => (0..3_usize).prop_map(Event::KillProcess),
        1 => (0..3_usize).prop_map(Event::KillDaemon),
        2 => (0..3_usize).prop_map(Event::Tell),
    ]
}

#[derive(Default)]
struct Node {
    process: TicketKeyRing,
    daemon: TicketKeyRing,
}

/// A cluster of three nodes, in which what is told arrives within `SPREADS`, if at all.
struct Cluster {
    now: u64,
    nodes: [Node; 3],
}

impl Cluster {
    fn tell(&mut self, teller: usize) {
        let now = self.now;
        let Node { process, daemon } = &mut self.nodes[teller];
        daemon.merge(copy(process), now);
        let text = daemon.own().cloned().unwrap_or_default().write();
        for (index, other) in self.nodes.iter_mut().enumerate() {
            if index != teller {
                let keys = NodeKeys::read(&text).unwrap();
                other.daemon.hear(node(teller as u8), keys, now);
            }
            other.process.merge(copy(&other.daemon), now);
        }
    }

    fn tell_all(&mut self) {
        for teller in 0..3 {
            self.tell(teller);
        }
    }

    fn pass(&mut self, time: u64) {
        let end = self.now + time;
        while self.now < end {
            self.now = end.min(self.now + LOOK);
            for node in &mut self.nodes {
                node.process.forget(self.now);
                node.daemon.forget(self.now);
                node.process.renew(self.now);
            }
        }
    }
}

proptest! {
    /// Whatever dies, as long as not both programs of a node do at once: a ticket is good at each node for its lifetime,
    /// and no key is known beyond its time.
    #[test]
    fn tickets_are_good_everywhere_for_their_time(events in prop::collection::vec(event(), 1..60)) {
        let mut cluster = Cluster { now: NOON, nodes: Default::default() };
        cluster.pass(1);
        cluster.tell_all();
        let mut tickets: Vec<(u64, [u8; 8])> = Vec::new();
        for event in events {
            match event {
                Event::Pass(time) => cluster.pass(time),
                Event::Tell(teller) => cluster.tell(teller),
                Event::KillProcess(at) => {
                    let now = cluster.now;
                    let Node { process, daemon } = &mut cluster.nodes[at];
                    daemon.merge(std::mem::take(process), now);
                    process.merge(copy(daemon), now);
                    process.renew(now);
                }
                Event::KillDaemon(at) => {
                    let Node { process, daemon } = &mut cluster.nodes[at];
                    *daemon = copy(process);
                }
            }
            cluster.tell_all();
            let now = cluster.now;
            for node in &cluster.nodes {
                let key = node.process.encrypting(now).expect("there is a key");
                tickets.push((now, key.number()));
            }
            for node in &cluster.nodes {
                let known: Vec<_> = node.process.all().map(|key| key.number()).collect();
                for (begun, number) in &tickets {
                    // A key encrypts until the next one is made and told.
                    if now - begun < LIFETIME - LOOK - SPREADS {
                        prop_assert!(known.contains(number), "a ticket of {} s", now - begun);
                    }
                    prop_assert!(now - begun < 18 * HOUR || !known.contains(number));
                }
            }
        }
    }
}
