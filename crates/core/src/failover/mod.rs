//! Decides which of several connection servers is in front, which means that it has the cluster addresses.
//!
//! ```text
//!            nobody in front was heard for `detection`,
//!            or it is handed over to this one: Take
//!           .------------------------------------------.
//!           |                                          v
//!        standby                                     front <---------.
//!           ^                                          |   \          | not taken within
//!           '------------------------------------------'    hand_to   | `detection`
//!            somebody is in front with a higher epoch,         \      |
//!            or the same and a higher priority: Yield           v     |
//!           ^                                                handing -'
//!           '----------------------------------------------------'
//!            the other one is in front: Yield
//! ```
//!
//! Each takeover has an epoch above all that its node has heard of, so that of two in front one is the later,
//! and stays. To clients it does not matter which of the two stays, because both can take every connection. It
//! does matter that one is in front, so in doubt a candidate takes over, and it yields only on proof: the word
//! of another one that is in front. The exception is a candidate that understands nobody but hears that another
//! node is there. As far as it knows its own key, version or clock is wrong and it could serve nobody, so it
//! does not take over.

mod hearing;
mod peer;

use std::collections::VecDeque;
use std::time::Duration;

use baton_wire::{Address, Candidate, CandidateState, Clock};

use crate::Moment;
use hearing::Hearing;
use peer::Peer;

/// The settings that all candidates agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The candidates' own addresses, the most preferred first.
    pub candidates: Vec<Address>,
    /// A candidate that was not heard for this long counts as absent. Each candidate sends a sign of life every
    /// quarter of this time.
    pub detection: Duration,
    /// Whether a preferred candidate that is back gets the cluster addresses back.
    pub preempt: bool,
}

/// What the owner of a [`Failover`] has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Hold the cluster addresses, and tell the LAN.
    Take {
        /// The epoch of this takeover.
        epoch: u64,
    },
    /// Let go of the cluster addresses.
    Yield {
        /// The candidate that is in front.
        to: Address,
    },
    /// Announce the cluster addresses on the LAN again: another node may have announced them too.
    Announce,
    /// Send this message to every other candidate.
    Say(Candidate),
}

/// The state of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Standby,
    Front,
    Handing { to: Address, until: Moment },
}

/// One candidate's view of the failover.
#[derive(Debug)]
pub struct Failover {
    own: Address,
    rules: Rules,
    /// All candidates except this one, the most preferred first.
    peers: Vec<Peer>,
    hearing: Hearing,
    state: State,
    /// The epoch of this takeover if this node is in front, otherwise the highest epoch that was heard of.
    epoch: u64,
    /// Silence counts only from this moment on, because nobody could be heard before.
    since: Moment,
    beat_at: Moment,
    announced: Option<Moment>,
    /// When this was last called with a time.
    awake: Moment,
    takeovers: u64,
    actions: VecDeque<Action>,
}

impl Failover {
    /// Makes a candidate that waits. `epoch` is the highest that an earlier run of the daemon knew of. `own`
    /// must be among the candidates.
    pub fn standby(now: Moment, own: Address, rules: Rules, epoch: u64) -> Self {
        let mut peers = Vec::new();
        for (priority, address) in rules.candidates.iter().enumerate() {
            if *address != own {
                peers.push(Peer::new(*address, priority));
            }
        }
        Self {
            own,
            rules,
            peers,
            hearing: Hearing::default(),
            state: State::Standby,
            epoch,
            since: now,
            beat_at: now,
            announced: None,
            awake: now,
            takeovers: 0,
            actions: VecDeque::new(),
        }
    }

    /// Makes a candidate that already has the cluster addresses, since `epoch` of an earlier run of the daemon.
    pub fn front(now: Moment, own: Address, rules: Rules, epoch: u64) -> Self {
        let mut failover = Self::standby(now, own, rules, epoch);
        failover.state = State::Front;
        failover
    }

    /// Changes the timing and preemption; the candidates stay the same.
    pub fn retime(&mut self, detection: Duration, preempt: bool) {
        self.rules.detection = detection;
        self.rules.preempt = preempt;
    }

    /// Takes what a candidate said when its clock showed `sent`. Returns `false` if the sender is no candidate,
    /// or if something that it said later has already come.
    pub fn handle(&mut self, now: Moment, from: Address, sent: Clock, said: Candidate) -> bool {
        self.tick(now);
        let detection = self.rules.detection;
        let Some(peer) = self.peers.iter_mut().find(|peer| peer.address == from) else {
            return false;
        };
        self.hearing.understand();
        if !peer.hear(now, sent, said, detection) {
            return false;
        }
        let theirs = (said.epoch, usize::MAX - peer.priority);
        if let CandidateState::Handing { to } = said.state
            && to == self.own
        {
            // A handover of an earlier epoch is out of date.
            if said.epoch >= self.epoch {
                self.take_as(now, said.epoch.saturating_add(1));
            }
            return true;
        }
        let other_is_front = said.state != CandidateState::Standby;
        if !self.is_front() {
            self.epoch = self.epoch.max(said.epoch);
        } else if other_is_front && theirs > (self.epoch, usize::MAX - self.priority()) {
            self.state = State::Standby;
            (self.epoch, self.since) = (said.epoch, now);
            self.actions.push_back(Action::Yield { to: from });
            self.say(now);
        } else if other_is_front && self.may_announce(now) {
            self.announced = Some(now);
            self.actions.push_back(Action::Announce);
            self.say(now);
        }
        true
    }

    /// Another node of the cluster said something that was understood, so key, version and clock are right.
    pub fn handle_understood(&mut self) {
        self.hearing.understand();
    }

    /// Something came from a node of the cluster that could not be understood. Returns `true` if this node has
    /// understood nobody yet and this is the first such message for a while.
    pub fn handle_unintelligible(&mut self, now: Moment, from: Address) -> bool {
        self.tick(now);
        self.hearing.overhear(now, from, self.rules.detection)
    }

    /// From now on this node uses another key. That it understood others by the old key proves nothing, and
    /// nobody could be heard by the new key so far.
    pub fn rekey(&mut self, now: Moment) {
        self.tick(now);
        self.hearing = Hearing::default();
        self.since = now;
    }

    /// The node whose message was heard lately but not understood, if this node has understood nobody yet.
    pub fn unintelligible(&self, now: Moment) -> Option<Address> {
        self.hearing.unintelligible(now, self.rules.detection)
    }

    /// Begins to hand over to another candidate. Returns `false` if this node is not in front, or if that
    /// candidate is not heard.
    pub fn hand_to(&mut self, now: Moment, to: Address) -> bool {
        self.tick(now);
        let detection = self.rules.detection;
        let lives = |peer: &Peer| peer.address == to && peer.lives(now, detection);
        if !self.is_front() || !self.peers.iter().any(lives) {
            return false;
        }
        self.hand_over(now, to);
        true
    }

    /// The next thing to do up to `now`. To be called until it returns `None`: after every other call, and at
    /// [`Failover::next_timeout`].
    pub fn poll(&mut self, now: Moment) -> Option<Action> {
        self.tick(now);
        self.actions.pop_front()
    }

    /// When to call [`Failover::poll`] again.
    pub fn next_timeout(&self) -> Moment {
        let due = match self.state {
            State::Standby => self.due(self.awake),
            State::Handing { until, .. } => until,
            State::Front => self.beat_at,
        };
        due.min(self.beat_at)
    }

    /// Whether this candidate has the cluster addresses.
    pub fn is_front(&self) -> bool {
        self.state != State::Standby
    }

    /// The candidate that has the cluster addresses, as far as this one knows; if several claim them, the last
    /// to take them.
    pub fn who(&self, now: Moment) -> Option<Address> {
        if self.is_front() {
            return Some(self.own);
        }
        let fronts = self.peers.iter().filter(|peer| peer.is_front());
        let living = fronts.filter(|peer| peer.lives(now, self.rules.detection));
        living.max_by_key(|peer| peer.claim()).map(|p| p.address)
    }

    /// The most preferred of the other candidates that live.
    pub fn next(&self, now: Moment) -> Option<Address> {
        let detection = self.rules.detection;
        let living = self.peers.iter().find(|peer| peer.lives(now, detection));
        living.map(|peer| peer.address)
    }

    /// What this candidate says of itself to the others.
    pub fn said(&self) -> Candidate {
        let state = match self.state {
            State::Standby => CandidateState::Standby,
            State::Front => CandidateState::Front,
            State::Handing { to, .. } => CandidateState::Handing { to },
        };
        Candidate {
            epoch: self.epoch,
            state,
        }
    }

    /// How often this candidate took the cluster addresses.
    pub fn takeovers(&self) -> u64 {
        self.takeovers
    }

    fn tick(&mut self, now: Moment) {
        self.awake = now;
        match self.state {
            State::Standby if self.due(now) <= now => {
                self.take_as(now, self.epoch.saturating_add(1));
            }
            State::Handing { until, .. } if until <= now => {
                self.state = State::Front;
                self.say(now);
            }
            State::Front if self.rules.preempt => self.give_back(now),
            _ => {}
        }
        if self.beat_at <= now {
            self.say(now);
        }
    }

    /// When this candidate takes over if nothing more is heard. Candidates take over one after the other, those
    /// with a higher priority first.
    fn due(&self, now: Moment) -> Moment {
        let detection = self.rules.detection;
        if self.peers.is_empty() {
            return self.since;
        }
        let missed = self.missed_since() + detection;
        // A candidate that was in front is silent by then, so nobody waits for it.
        let is_before = |peer: &&Peer| {
            peer.priority < self.priority() && !peer.is_front() && peer.lives(now, detection)
        };
        let before = self.peers.iter().filter(is_before).count();
        let turn = detection / 4 * u32::try_from(before).unwrap_or(u32::MAX);
        if self.epoch > 0 {
            return missed + turn;
        }
        // If nobody has been in front yet, all candidates are just starting, and those of higher priority may
        // wait longer.
        let begun = self.peers.iter().filter(is_before);
        let last = begun.filter_map(Peer::steady_since).max();
        let theirs = last.unwrap_or(self.since) + detection;
        (missed.max(theirs) + turn).min((self.since + detection * 2).max(missed))
    }

    fn missed_since(&self) -> Moment {
        let fronts = self.peers.iter().filter(|peer| peer.is_front());
        let heard = fronts.filter_map(Peer::heard_at);
        heard.chain(self.hearing.at()).fold(self.since, Moment::max)
    }

    /// Hands over to a more preferred candidate once that has been heard without a pause for four `detection`s.
    fn give_back(&mut self, now: Moment) {
        let detection = self.rules.detection;
        let own = self.priority();
        let is_preferred = |peer: &&mut Peer| {
            peer.priority < own && !peer.is_front() && peer.lives(now, detection)
        };
        let preferred = self.peers.iter_mut().find(is_preferred);
        if let Some(peer) = preferred
            && peer.steady(now) >= detection * 4
        {
            // If it does not take over, it is tried again only after the same time.
            peer.begin_again(now);
            let to = peer.address;
            self.hand_over(now, to);
        }
    }

    fn hand_over(&mut self, now: Moment, to: Address) {
        let until = now + self.rules.detection;
        self.state = State::Handing { to, until };
        self.say(now);
    }

    fn take_as(&mut self, now: Moment, epoch: u64) {
        (self.state, self.epoch) = (State::Front, epoch);
        self.takeovers += 1;
        self.announced = Some(now);
        self.actions.push_back(Action::Take { epoch });
        self.say(now);
    }

    fn say(&mut self, now: Moment) {
        self.beat_at = now + self.rules.detection / 4;
        self.actions.push_back(Action::Say(self.said()));
    }

    /// Limits announcements: two candidates in front say so again and again, and the LAN need not be told each
    /// time.
    fn may_announce(&self, now: Moment) -> bool {
        (self.announced).is_none_or(|last| now.since(last) >= self.rules.detection)
    }

    fn priority(&self) -> usize {
        let mut candidates = self.rules.candidates.iter();
        let position = candidates.position(|one| *one == self.own);
        position.unwrap_or(usize::MAX)
    }
}
