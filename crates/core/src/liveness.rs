//! Whether a data server lives. A dead daemon is not a dead server. So a data server that sends no HELLO is
//! asked (ALIVE), and its program answers without the daemon. A host is dead only if neither is heard of it.
//!
//! Silence counts only while this side listens, which its clock takes care of
//! ([`crate::listening::ListeningClock`]). Silence does not count either if nobody at all is heard: then this
//! host itself is cut off, and what it did meanwhile would conflict with the others, which have lived on, when
//! it comes back. With only one other host the two cases cannot be told apart, and the silence is believed.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use baton_wire::Address;

use crate::Moment;

/// The time between two looks, and between two questions to the same host.
pub const TICK: Duration = Duration::from_millis(50);

/// What changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The host at this address has not been heard for too long, and is dead.
    Died(Address),
    /// The host at this address is heard again.
    Lives(Address),
}

/// The hosts that are watched.
#[derive(Clone, Debug)]
pub struct Liveness {
    /// A HELLO is overdue after this long.
    overdue: Duration,
    dead_after: Duration,
    /// When anybody was heard last, watched or not.
    anybody: Moment,
    /// Whether there are several other hosts.
    has_witnesses: bool,
    hosts: BTreeMap<Address, Host>,
    changes: VecDeque<Change>,
}

#[derive(Clone, Copy, Debug)]
struct Host {
    heard: Moment,
    dead: bool,
}

impl Liveness {
    /// Makes the state of a node that watches no host yet. A host says HELLO once every `hello`, and is dead if it is not
    /// heard for `dead_after`.
    pub fn new(now: Moment, hello: Duration, dead_after: Duration) -> Self {
        Self {
            overdue: 2 * hello,
            dead_after,
            anybody: now,
            has_witnesses: false,
            hosts: BTreeMap::new(),
            changes: VecDeque::new(),
        }
    }

    /// Watches exactly these hosts from now on. `others` is the number of other hosts in all. A new host counts
    /// as heard just now.
    pub fn watch(
        &mut self,
        now: Moment,
        hosts: impl IntoIterator<Item = Address>,
        others: usize,
        hello: Duration,
        dead_after: Duration,
    ) {
        (self.overdue, self.dead_after) = (2 * hello, dead_after);
        self.has_witnesses = others > 1;
        let mut before = std::mem::take(&mut self.hosts);
        let new = Host {
            heard: now,
            dead: false,
        };
        self.hosts = hosts
            .into_iter()
            .map(|address| (address, before.remove(&address).unwrap_or(new)))
            .collect();
    }

    /// Takes a sign of life, HELLO or the answer to ALIVE. A sign of a host that is not watched shows only that
    /// this host is not cut off.
    pub fn handle_sign(&mut self, now: Moment, from: Address) {
        if self.is_cut_off(now) {
            // Until now nobody could be heard, so silence counts only from now on.
            for host in self.hosts.values_mut().filter(|host| !host.dead) {
                host.heard = now;
            }
        }
        self.anybody = now;
        let Some(host) = self.hosts.get_mut(&from) else {
            return;
        };
        host.heard = now;
        if std::mem::replace(&mut host.dead, false) {
            self.changes.push_back(Change::Lives(from));
        }
    }

    /// Looks for silent hosts; to be called every [`TICK`]. Returns the hosts to ask, which include those that
    /// are dead.
    pub fn tick(&mut self, now: Moment) -> Vec<Address> {
        let is_cut_off = self.is_cut_off(now);
        let mut asked = Vec::new();
        for (address, host) in &mut self.hosts {
            let silent = now.since(host.heard);
            if silent >= self.overdue.min(self.dead_after / 4) {
                asked.push(*address);
            }
            if silent >= self.dead_after && !host.dead && !is_cut_off {
                host.dead = true;
                self.changes.push_back(Change::Died(*address));
            }
        }
        asked
    }

    /// The next change, in order. To be called until it returns `None`.
    pub fn poll(&mut self) -> Option<Change> {
        self.changes.pop_front()
    }

    /// The hosts that are dead.
    pub fn dead(&self) -> impl Iterator<Item = Address> {
        let dead = self.hosts.iter().filter(|(_, host)| host.dead);
        dead.map(|(address, _)| *address)
    }

    /// Whether this host hears nobody. Hosts that live are heard in less than this time, if need be because they
    /// are asked.
    pub fn is_cut_off(&self, now: Moment) -> bool {
        self.has_witnesses && now.since(self.anybody) >= self.dead_after / 2
    }

    /// Whether the host at this address is dead.
    pub fn is_dead(&self, address: Address) -> bool {
        self.hosts.get(&address).is_some_and(|host| host.dead)
    }
}
