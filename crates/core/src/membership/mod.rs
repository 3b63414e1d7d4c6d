//! The data servers as a CS sees them: which of them may get a service's new connections.
//!
//! The rule, for each service, among its nodes with a weight above 0:
//!
//! 0. A node that drains is out of all services, heard or not, from the HELLO that says so until one that takes
//!    it back. It has not failed: it still serves the connections that it has.
//! 1. A node that last said FAILING of the service is out, heard or not, until it says PASSING.
//! 2. Of the others those that are *heard* are usable: their last HELLO is younger than `silence`.
//! 3. If none of them is heard, all of them are usable: a dead daemon is not a dead server, so silence alone never
//!    empties a service. It never empties a pool either, which has some of a service's nodes.
//!
//! Before these rules apply, nodes that are known to be dead (`liveness`) are out: that is more than silence. So
//! are *deaf* nodes, which refuse messages because their clock and ours differ. If all others are deaf as well
//! they stay in, because then it is our clock that is wrong.
//!
//! UNKNOWN says nothing: the word before it stands, even that of an earlier run of the daemon, so that
//! restarting a daemon changes nothing. For `silence` after the start a node counts as heard, so that the first
//! HELLO to arrive does not draw all connections to its sender.

mod cluster;
mod event;
mod presence;
mod usable;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroU8;
use std::time::Duration;

use baton_wire::{Address, Clock, Endpoint, Health, Hello, HelloService};

pub use cluster::{Cluster, Node, Service};
pub use event::{Event, HelloOutcome};
pub use presence::Presence;
pub use usable::{Basis, Usable, UsableServer};

use crate::Moment;
use crate::policy::Load;

/// The state of every data server and of every service.
#[derive(Clone, Debug)]
pub struct Membership {
    cluster: Cluster,
    silence: Duration,
    /// The presence of each node of `cluster`.
    presences: BTreeMap<Address, Presence>,
    reports: BTreeMap<(Address, Endpoint), Report>,
    /// The nodes whose last HELLO said that they want no new requests.
    draining: BTreeSet<Address>,
    dead: BTreeSet<Address>,
    deaf: BTreeSet<Address>,
    /// The usable data servers of each service of `cluster`.
    usable: BTreeMap<Endpoint, Usable>,
    events: VecDeque<Event>,
}

/// What a node last said of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// The last health that the node reported other than UNKNOWN; UNKNOWN if there was none.
    pub health: Health,
    /// The number of established connections.
    pub connections: u32,
}

impl Membership {
    /// The view of a CS that starts at `now` and has heard nobody yet.
    pub fn new(now: Moment, cluster: Cluster, silence: Duration) -> Self {
        let mut membership = Self {
            cluster: Cluster::default(),
            silence,
            presences: BTreeMap::new(),
            reports: BTreeMap::new(),
            draining: BTreeSet::new(),
            dead: BTreeSet::new(),
            deaf: BTreeSet::new(),
            usable: BTreeMap::new(),
            events: VecDeque::new(),
        };
        membership.adopt(
            cluster,
            Presence::Awaited {
                until: now + silence,
            },
        );
        membership
    }

    /// Begins to wait for the nodes that have not been heard yet, for `silence` from now on: before, no node
    /// could be heard.
    pub fn begin(&mut self, now: Moment) {
        let until = now + self.silence;
        for presence in self.presences.values_mut() {
            if let Presence::Awaited { .. } = presence {
                *presence = Presence::Awaited { until };
            }
        }
    }

    /// Puts another configuration in force. What is known of nodes and services that stay is kept.
    /// A new node is silent until it is heard, because others are known to live and it is not.
    pub fn reconfigure(&mut self, now: Moment, cluster: Cluster, silence: Duration) {
        self.expire(now);
        self.silence = silence;
        self.adopt(cluster, Presence::Silent);
    }

    /// Takes a HELLO that came from `from`, sent when that node's clock showed `sent`.
    pub fn handle_hello(
        &mut self,
        now: Moment,
        from: Address,
        sent: Clock,
        hello: &Hello,
    ) -> HelloOutcome {
        self.expire(now);
        let Some(presence) = self.presences.get_mut(&from) else {
            return HelloOutcome::FromStranger;
        };
        let incarnation = hello.incarnation();
        if presence.is_ahead_of(incarnation, sent) {
            return HelloOutcome::Outdated;
        }
        let until = now + self.silence;
        let before = *presence;
        *presence = Presence::Heard {
            until,
            incarnation,
            sent,
            cpu: hello.cpu(),
        };

        if !matches!(before, Presence::Heard { .. }) {
            self.events.push_back(Event::CameUp {
                node: self.name(from),
            });
        }
        let mut changed = BTreeSet::new();
        for word in hello.services() {
            if self.hear(from, word) {
                changed.insert(word.cluster);
            }
        }
        if self.note_draining(from, hello.is_draining()) || !before.is_present() {
            changed.extend(self.services_of(from));
        }
        self.refresh(changed);
        HelloOutcome::Accepted
    }

    /// Takes the word of whoever watches the hosts themselves that this node is dead, or no longer is.
    pub fn handle_death(&mut self, now: Moment, address: Address, dead: bool) {
        self.expire(now);
        if set(&mut self.dead, address, dead) {
            self.refresh(self.services_of(address).collect());
        }
    }

    /// Takes the word of whoever compares clocks that this node refuses messages (is deaf), or accepts them
    /// again.
    pub fn handle_deafness(&mut self, now: Moment, address: Address, deaf: bool) {
        self.expire(now);
        if set(&mut self.deaf, address, deaf) {
            self.refresh(self.services_of(address).collect());
        }
    }

    /// The next event up to `now`. To be called until it returns `None`: after every other call, and now and
    /// then, because nodes go silent with time.
    pub fn poll(&mut self, now: Moment) -> Option<Event> {
        self.expire(now);
        self.events.pop_front()
    }

    /// Who may get new connections of the service at `at`, as of the last call that took `now`;
    /// `None` if there is no such service.
    pub fn usable(&self, at: Endpoint) -> Option<&Usable> {
        self.usable.get(&at)
    }

    /// The configuration in force.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Whether the node of this address is heard; `None` if there is no such node.
    pub fn presence(&self, address: Address) -> Option<Presence> {
        self.presences.get(&address).copied()
    }

    /// Whether the node of this address wants no new requests, as it last said.
    pub fn is_draining(&self, address: Address) -> bool {
        self.draining.contains(&address)
    }

    /// What the node last said of the service at `at`, if it ever did.
    pub fn report(&self, address: Address, at: Endpoint) -> Option<Report> {
        self.reports.get(&(address, at)).copied()
    }

    /// The load of the node of this address for the service at `at`, from its last HELLO; `None` if it is not
    /// heard.
    pub fn load(&self, address: Address, at: Endpoint) -> Option<Load> {
        let Presence::Heard { cpu, .. } = self.presence(address)? else {
            return None;
        };
        let connections = self.report(address, at)?.connections;
        Some(Load { connections, cpu })
    }

    /// Makes `cluster` the one in force, its new nodes being in the state `new`.
    fn adopt(&mut self, cluster: Cluster, new: Presence) {
        let presence = |node: &Node| self.presences.get(&node.address).copied().unwrap_or(new);
        self.presences = cluster
            .nodes()
            .map(|node| (node.address, presence(node)))
            .collect();
        self.reports
            .retain(|&(address, at), _| cluster.serves(address, at));
        self.draining.retain(|&node| cluster.node(node).is_some());
        self.usable.retain(|&at, _| cluster.service(at).is_some());
        self.cluster = cluster;
        self.refresh(self.cluster.services().map(|service| service.at).collect());
    }

    fn expire(&mut self, now: Moment) {
        let mut changed = BTreeSet::new();
        let is_due = |presence: &Presence| presence.timeout().is_some_and(|timeout| timeout <= now);
        let due: Vec<_> = self
            .presences
            .iter()
            .filter(|(_, p)| is_due(p))
            .map(|(a, _)| *a)
            .collect();
        for address in due {
            self.presences.insert(address, Presence::Silent);
            self.events.push_back(Event::WentSilent {
                node: self.name(address),
            });
            changed.extend(self.services_of(address));
        }
        self.refresh(changed);
    }

    /// Takes a node's word on whether it wants new requests. Returns whether that has changed.
    fn note_draining(&mut self, node: Address, draining: bool) -> bool {
        let changed = set(&mut self.draining, node, draining);
        if changed {
            let node = self.name(node);
            self.events.push_back(if draining {
                Event::Draining { node }
            } else {
                Event::Undrained { node }
            });
        }
        changed
    }

    /// Takes a node's word on a service. Returns whether the node's health for it has changed.
    fn hear(&mut self, from: Address, word: &HelloService) -> bool {
        let at = word.cluster;
        let Some(service) = self
            .cluster
            .service(at)
            .filter(|_| self.cluster.serves(from, at))
        else {
            return false;
        };
        let (node, service) = (self.name(from), service.name.clone());
        let unknown = Report {
            health: Health::Unknown,
            connections: 0,
        };
        let report = self.reports.entry((from, at)).or_insert(unknown);
        report.connections = word.connections;
        if word.health == Health::Unknown || word.health == report.health {
            return false;
        }
        report.health = word.health;
        self.events.push_back(match word.health {
            Health::Failing => Event::Failing { node, service },
            Health::Passing | Health::Unknown => Event::Passing { node, service },
        });
        true
    }

    /// Applies the rules to these services.
    fn refresh(&mut self, services: BTreeSet<Endpoint>) {
        for at in services {
            let usable = Usable::of(self.candidates(at));
            if self.usable.get(&at) != Some(&usable) {
                self.usable.insert(at, usable);
                self.events.push_back(Event::UsableChanged { at });
            }
        }
    }

    /// The nodes that rules 0 and 1 leave, each with whether it is heard: those that are not deaf, or all if
    /// every one is.
    fn candidates(&self, at: Endpoint) -> Vec<(bool, UsableServer)> {
        let fails = |node: &Node| {
            self.report(node.address, at)
                .is_some_and(|report| report.health == Health::Failing)
        };
        let candidate = |node: &Node| {
            let server = UsableServer {
                name: node.name.clone(),
                address: node.address,
                weight: NonZeroU8::new(node.weight)?,
            };
            let heard = self
                .presence(node.address)
                .is_some_and(|presence| presence.is_present());
            Some((heard, server))
        };
        let (deaf, hearing): (Vec<_>, Vec<_>) = self
            .cluster
            .members(at)
            .filter(|node| !self.is_draining(node.address) && !self.dead.contains(&node.address))
            .filter(|node| !fails(node))
            .filter_map(candidate)
            .partition(|(_, server)| self.deaf.contains(&server.address));
        if hearing.is_empty() { deaf } else { hearing }
    }

    fn services_of(&self, address: Address) -> impl Iterator<Item = Endpoint> {
        self.cluster
            .services()
            .map(|service| service.at)
            .filter(move |&at| self.cluster.serves(address, at))
    }

    fn name(&self, address: Address) -> String {
        self.cluster
            .node(address)
            .map(|node| node.name.clone())
            .unwrap_or_default()
    }
}

/// Puts the address into the set or takes it out. Returns whether that changed the set.
fn set(all: &mut BTreeSet<Address>, address: Address, is_in: bool) -> bool {
    if is_in {
        all.insert(address)
    } else {
        all.remove(&address)
    }
}
