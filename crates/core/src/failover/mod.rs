//! Which of several connection servers is in front: has the cluster addresses.
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
//! Each takeover has an epoch above all that were heard of, so that of two in front one is the later, and
//! stays. Which of the two it is does not matter to clients: both can take every connection. That there
//! is one does, so a doubt is decided for taking, and yielding needs proof: the word of another that is
//! in front. But who understands nobody, and hears that another is there, has the wrong key, version or
//! clock itself, for all it knows: it would serve nobody, so it does not take.

mod hearing;
mod peer;

use std::collections::VecDeque;
use std::time::Duration;

use baton_wire::{Address, Candidate, CandidateState, Clock};

use crate::Moment;
use hearing::Hearing;
use peer::Peer;

/// What all candidates agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The candidates' own addresses, the first to be preferred.
    pub candidates: Vec<Address>,
    /// Somebody who was not heard for so long is not there. A sign of life comes every quarter of it.
    pub detection: Duration,
    /// Whether a preferred one that is back gets the cluster addresses back.
    pub preempt: bool,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Hold the cluster addresses, and tell the LAN.
    Take {
        /// Of this time in front.
        epoch: u64,
    },
    /// Let go of them.
    Yield {
        /// Who is in front.
        to: Address,
    },
    /// Tell the LAN again: somebody else may have told it otherwise.
    Announce,
    /// Say this to every other candidate.
    Say(Candidate),
}

/// What a candidate does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Standby,
    Front,
    Handing { to: Address, until: Moment },
}

/// One candidate's view.
#[derive(Debug)]
pub struct Failover {
    own: Address,
    rules: Rules,
    /// All candidates but this one, in their order.
    peers: Vec<Peer>,
    hearing: Hearing,
    state: State,
    /// In front: of this time. Else the highest that was heard of.
    epoch: u64,
    /// Nobody is missed that could not have been heard since then.
    since: Moment,
    beat_at: Moment,
    announced: Option<Moment>,
    /// The last time that this was asked or told something.
    awake: Moment,
    takeovers: u64,
    actions: VecDeque<Action>,
}

impl Failover {
    /// A candidate that waits; `epoch` is the highest that an earlier life knew of. `own` is among the
    /// candidates.
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

    /// One that has had the cluster addresses all along, since the epoch of an earlier life.
    pub fn front(now: Moment, own: Address, rules: Rules, epoch: u64) -> Self {
        let mut failover = Self::standby(now, own, rules, epoch);
        failover.state = State::Front;
        failover
    }

    /// Other times, the same candidates.
    pub fn retime(&mut self, detection: Duration, preempt: bool) {
        self.rules.detection = detection;
        self.rules.preempt = preempt;
    }

    /// What a candidate said, when its clock showed `sent`. `false`: it is none, or has said other things
    /// since.
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
            // Not of an epoch that has passed.
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

    /// Another node of the cluster said something that was understood: key, version and clock are right.
    pub fn handle_understood(&mut self) {
        self.hearing.understand();
    }

    /// Something came from a node of the cluster that could not be understood. `true`: this one has understood
    /// nobody yet, and this is the first that it hears for a while.
    pub fn handle_unintelligible(&mut self, now: Moment, from: Address) -> bool {
        self.tick(now);
        self.hearing.overhear(now, from, self.rules.detection)
    }

    /// From now on by another key: whom it understood before says nothing, and nobody could be heard by it
    /// so far.
    pub fn rekey(&mut self, now: Moment) {
        self.tick(now);
        self.hearing = Hearing::default();
        self.since = now;
    }

    /// Who is there and not understood, by one that understands nobody.
    pub fn unintelligible(&self, now: Moment) -> Option<Address> {
        self.hearing.unintelligible(now, self.rules.detection)
    }

    /// Begins to hand over to another candidate. `false`: this one is not in front, or that one not
    /// there.
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

    /// Takes the cluster addresses, whoever has them, under this epoch or a higher one that is needed.
    pub fn take(&mut self, now: Moment, epoch: u64) {
        self.tick(now);
        self.take_as(now, epoch.max(self.epoch.saturating_add(1)));
    }

    /// The next thing to be done up to `now`, to be called until there is none: after every other call,
    /// and at [`Failover::next_timeout`].
    pub fn poll(&mut self, now: Moment) -> Option<Action> {
        self.tick(now);
        self.actions.pop_front()
    }

    /// When to poll again.
    pub fn next_timeout(&self) -> Moment {
        let due = match self.state {
            State::Standby => self.due(self.awake),
            State::Handing { until, .. } => until,
            State::Front => self.beat_at,
        };
        due.min(self.beat_at)
    }

    /// Whether this one has the cluster addresses.
    pub fn is_front(&self) -> bool {
        self.state != State::Standby
    }

    /// Who has them, as far as this one knows; of several the last to take them.
    pub fn who(&self, now: Moment) -> Option<Address> {
        if self.is_front() {
            return Some(self.own);
        }
        let fronts = self.peers.iter().filter(|peer| peer.is_front());
        let living = fronts.filter(|peer| peer.lives(now, self.rules.detection));
        living.max_by_key(|peer| peer.claim()).map(|p| p.address)
    }

    /// The preferred one of the others that live.
    pub fn next(&self, now: Moment) -> Option<Address> {
        let detection = self.rules.detection;
        let living = self.peers.iter().find(|peer| peer.lives(now, detection));
        living.map(|peer| peer.address)
    }

    /// What this one says of itself.
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

    /// How often it took the cluster addresses.
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

    /// When this one takes over if nothing more is heard: one after the other, those above it first.
    fn due(&self, now: Moment) -> Moment {
        let detection = self.rules.detection;
        if self.peers.is_empty() {
            return self.since;
        }
        let missed = self.missed_since() + detection;
        // Whoever was in front is silent by then, and not waited for.
        let is_before = |peer: &&Peer| {
            peer.priority < self.priority() && !peer.is_front() && peer.lives(now, detection)
        };
        let before = self.peers.iter().filter(is_before).count();
        let turn = detection / 4 * u32::try_from(before).unwrap_or(u32::MAX);
        if self.epoch > 0 {
            return missed + turn;
        }
        // Where nobody has been in front yet, all are just starting: those above may wait longer still.
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

    /// Hands over to a preferred one, once that has been there for a while.
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
            // Should it not take, it has another while.
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

    /// Two in front say so again and again; the LAN need not be told each time.
    fn may_announce(&self, now: Moment) -> bool {
        (self.announced).is_none_or(|last| now.since(last) >= self.rules.detection)
    }

    fn priority(&self) -> usize {
        let mut candidates = self.rules.candidates.iter();
        let position = candidates.position(|one| *one == self.own);
        position.unwrap_or(usize::MAX)
    }
}
