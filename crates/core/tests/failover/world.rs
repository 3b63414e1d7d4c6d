//! Some candidates and the network between them, in steps of one millisecond.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

use baton_core::failover::{Action, Failover, Rules};
use baton_core::{Moment, listening::ListeningClock};
use baton_wire::{Address, Candidate, Clock};

pub const DETECTION: u64 = 300;

/// A message on its way, or in the queue of its receiver.
struct Flying {
    arrives: u64,
    from: usize,
    to: usize,
    sent: u64,
    said: Candidate,
}

pub struct Host {
    /// `None`: the daemon was killed.
    pub machine: Option<Failover>,
    pub paused: bool,
    /// Whether the host has the cluster address, which it keeps when its daemon dies.
    pub has_address: bool,
    /// The epoch of the last takeover by this host's daemons.
    pub epoch: u64,
    pub announced: u64,
    clock: ListeningClock,
    queue: Vec<Flying>,
}

pub struct World {
    pub now: u64,
    pub hosts: Vec<Host>,
    flying: Vec<Flying>,
    /// Pairs of sender and receiver between which every message is lost.
    pub cut: BTreeSet<(usize, usize)>,
    /// Hosts with another key: they do not understand the others, and the others do not understand them.
    pub foreign: BTreeSet<usize>,
    /// How many of a hundred messages are lost.
    pub loss: u64,
    /// The longest time that a message takes, milliseconds.
    pub delay: u64,
    preempt: bool,
    chance: u64,
    sent: u64,
}

pub fn address(host: usize) -> Address {
    Address::from(Ipv4Addr::new(10, 77, 0, 2 + host as u8))
}

fn at(ms: u64) -> Moment {
    Moment::after_epoch(Duration::from_millis(ms))
}

impl World {
    pub fn new(hosts: usize, preempt: bool, seed: u64) -> Self {
        let host = |_| Host {
            machine: None,
            paused: false,
            has_address: false,
            epoch: 0,
            announced: 0,
            clock: ListeningClock::new(at(0), Duration::from_millis(DETECTION / 2)),
            queue: Vec::new(),
        };
        let mut world = Self {
            now: 0,
            hosts: (0..hosts).map(host).collect(),
            flying: Vec::new(),
            cut: BTreeSet::new(),
            foreign: BTreeSet::new(),
            loss: 0,
            delay: 5,
            preempt,
            chance: seed | 1,
            sent: 0,
        };
        (0..hosts).for_each(|host| world.start(host));
        world
    }

    fn rules(&self) -> Rules {
        Rules {
            candidates: (0..self.hosts.len()).map(address).collect(),
            detection: Duration::from_millis(DETECTION),
            preempt: self.preempt,
        }
    }

    /// Starts a daemon, or the successor of one that was killed.
    pub fn start(&mut self, host: usize) {
        let (rules, now) = (self.rules(), self.moment(host));
        let one = &mut self.hosts[host];
        if one.machine.is_none() {
            let own = address(host);
            one.machine = Some(match one.has_address {
                true => Failover::front(now, own, rules, one.epoch),
                false => Failover::standby(now, own, rules, one.epoch),
            });
            (one.paused, one.queue) = (false, Vec::new());
        }
    }

    /// Kills the daemon only: the host keeps its address.
    pub fn kill(&mut self, host: usize) {
        self.hosts[host].machine = None;
    }

    /// Crashes the whole host: it has no address and knows no epoch when it comes back.
    pub fn crash(&mut self, host: usize) {
        self.kill(host);
        let host = &mut self.hosts[host];
        (host.has_address, host.epoch) = (false, 0);
    }

    pub fn machine(&mut self, host: usize) -> &mut Failover {
        self.hosts[host].machine.as_mut().unwrap()
    }

    /// Returns the time by this host's clock.
    pub fn moment(&mut self, host: usize) -> Moment {
        let now = at(self.now);
        self.hosts[host].clock.look(now)
    }

    pub fn lives(&self, host: usize) -> bool {
        self.hosts[host].machine.is_some() && !self.hosts[host].paused
    }

    /// Returns the hosts that live and are in front.
    pub fn fronts(&self) -> Vec<usize> {
        let is_front = |host: &usize| {
            let machine = self.hosts[*host].machine.as_ref();
            self.lives(*host) && machine.is_some_and(Failover::is_front)
        };
        (0..self.hosts.len()).filter(is_front).collect()
    }

    pub fn run(&mut self, ms: u64) {
        (0..ms).for_each(|_| self.step());
    }

    /// Lets one millisecond pass: first messages arrive, then timers run.
    pub fn step(&mut self) {
        self.now += 1;
        let now = self.now;
        let (arrived, flying) = std::mem::take(&mut self.flying)
            .into_iter()
            .partition(|one| one.arrives <= now);
        self.flying = flying;
        for message in arrived as Vec<Flying> {
            let cut = self.cut.contains(&(message.from, message.to));
            if self.hosts[message.to].machine.is_some() && !cut {
                self.hosts[message.to].queue.push(message);
            }
        }
        for host in 0..self.hosts.len() {
            if self.lives(host) {
                self.turn(host);
            }
        }
    }

    fn turn(&mut self, host: usize) {
        let now = self.moment(host);
        let queue = std::mem::take(&mut self.hosts[host].queue);
        let foreign = self.foreign.clone();
        let machine = self.machine(host);
        for one in queue {
            let from = address(one.from);
            if foreign.contains(&one.from) == foreign.contains(&host) {
                machine.handle(now, from, Clock::from_nanos(one.sent), one.said);
            } else {
                machine.handle_unintelligible(now, from);
            }
        }
        let mut done = Vec::new();
        // A caller that heeds next_timeout would poll in the same way. Other calls leave things to be done as well.
        while let Some(action) = machine.poll(now) {
            done.push(action);
        }
        assert!(machine.next_timeout() > now, "it would be asked for ever");
        for action in done {
            self.act(host, action);
        }
    }

    fn act(&mut self, host: usize, action: Action) {
        let one = &mut self.hosts[host];
        match action {
            Action::Take { epoch } => {
                assert!(
                    epoch > one.epoch,
                    "epochs grow: {epoch} after {}",
                    one.epoch
                );
                (one.has_address, one.epoch) = (true, epoch);
            }
            Action::Yield { to } => {
                assert_ne!(to, address(host));
                one.has_address = false;
            }
            Action::Announce => one.announced += 1,
            Action::Say(said) => (0..self.hosts.len())
                .filter(|to| *to != host)
                .collect::<Vec<_>>()
                .into_iter()
                .for_each(|to| self.send(host, to, said)),
        }
    }

    fn send(&mut self, from: usize, to: usize, said: Candidate) {
        if self.random(100) < self.loss {
            return;
        }
        let arrives = self.now + self.random(self.delay + 1);
        self.sent += 1;
        self.flying.push(Flying {
            arrives,
            from,
            to,
            // The count of messages is finer than the time, so two messages of one instant have an order.
            sent: self.sent,
            said,
        });
    }

    pub fn random(&mut self, below: u64) -> u64 {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        self.chance % below
    }
}
