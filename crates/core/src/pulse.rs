//! Whether a data server lives. A dead daemon is not a dead server: so who does not say HELLO is asked
//! (ALIVE), and its program answers without the daemon. Only a host of which neither is heard is dead.
//!
//! Silence counts only while this side listens, which is for its clock to see to ([`crate::listening::ListeningClock`]).
//! Nor does it where nobody at all is heard: then it is this host that is cut off, and, should it come back, what it did
//! meanwhile would meet those who have lived on. Where there is only one other host, nobody can tell the two apart, and
//! the silence is believed.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use baton_wire::Address;

use crate::Moment;

/// Between two looks, and between two questions to the same host.
pub const TICK: Duration = Duration::from_millis(50);

/// What changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The host at this address has not been heard for too long, and is dead.
    Died(Address),
    /// It is heard again.
    Lives(Address),
}

/// The hosts that are watched.
#[derive(Clone, Debug)]
pub struct Pulse {
    /// HELLO is overdue after this long.
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

impl Pulse {
    /// Watches nobody yet. A host says HELLO once every `hello`, and is dead after `dead_after`.
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

    /// Watches exactly these from now on, of `others` hosts in all. A new one counts as heard just now.
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

    /// Takes a sign of life, HELLO or the answer to ALIVE. Of a host that is not watched it says only that this
    /// one is not cut off.
    pub fn handle_sign(&mut self, now: Moment, from: Address) {
        if self.is_cut_off(now) {
            // Until now nobody could be heard; from now on silence counts.
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

    /// To be called every [`TICK`]; returns whom to ask. Those that are dead are asked as well.
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

    /// What changed, in order; to be called until there is nothing.
    pub fn poll(&mut self) -> Option<Change> {
        self.changes.pop_front()
    }

    /// Who is dead.
    pub fn dead(&self) -> impl Iterator<Item = Address> {
        let dead = self.hosts.iter().filter(|(_, host)| host.dead);
        dead.map(|(address, _)| *address)
    }

    /// Whether this host hears nobody. Those who live are heard, or asked and heard, in less than this.
    pub fn is_cut_off(&self, now: Moment) -> bool {
        self.has_witnesses && now.since(self.anybody) >= self.dead_after / 2
    }

    /// Whether the host at this address is dead.
    pub fn is_dead(&self, address: Address) -> bool {
        self.hosts.get(&address).is_some_and(|host| host.dead)
    }
}
