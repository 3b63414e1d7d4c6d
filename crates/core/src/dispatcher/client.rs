//! The questions that a data server asks a dispatcher on another node, and what it does with the answers.
//!
//! Nothing waits for a dispatcher that does not answer. Each question has a deadline. A dispatcher that has
//! missed several in a row is not asked for a while; then a single question tries it again. An answer is
//! believed if its question is open and it names a data server that can serve the request. In all other cases
//! the client decides as if there were no dispatcher.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use baton_wire::{Address, Flow, Reply};

use crate::Moment;

/// After this many questions in a row without an answer in time the dispatcher counts as dead.
pub const DEAD_AFTER: u32 = 8;

/// How long a dispatcher that counts as dead is not asked.
pub const REST: Duration = Duration::from_secs(1);

/// The questions to one dispatcher; `T` is what a question is about.
#[derive(Debug)]
pub struct DispatcherClient<T> {
    next: u64,
    open: BTreeMap<u64, Open<T>>,
    /// The deadline and number of each open question.
    ends: BTreeSet<(Moment, u64)>,
    late_in_a_row: u32,
    rests_until: Option<Moment>,
    counts: Counts,
}

#[derive(Debug)]
struct Open<T> {
    flow: Flow,
    end: Moment,
    about: T,
}

/// How many questions had which result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How many questions were asked.
    pub asked: u64,
    /// How many answers came in time and named a data server that can serve the request.
    pub answered: u64,
    /// How many questions were not answered in time.
    pub late: u64,
    /// How many questions were not asked because the dispatcher counted as dead.
    pub dead: u64,
    /// How many answers named a data server that cannot serve the request, or did not belong to a question that
    /// was asked.
    pub lie: u64,
}

impl std::iter::Sum for Counts {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            asked: sum.asked + one.asked,
            answered: sum.answered + one.answered,
            late: sum.late + one.late,
            dead: sum.dead + one.dead,
            lie: sum.lie + one.lie,
        })
    }
}

/// What an answer means.
#[derive(Debug, PartialEq, Eq)]
pub enum ReplyOutcome<T> {
    /// This data server is to serve the request that was asked about, and requests that are alike for this long.
    Answer(T, Address, Duration),
    /// The dispatcher named no data server, or one that cannot serve the request, or answered too late: decide
    /// without it.
    Nothing(T),
    /// The answer belongs to no open question.
    Unasked,
}

impl<T> DispatcherClient<T> {
    /// Makes a client without questions. `first` is the number of its first question; best is one that no
    /// earlier client has reached.
    pub fn new(first: u64) -> Self {
        Self {
            next: first,
            open: BTreeMap::new(),
            ends: BTreeSet::new(),
            late_in_a_row: 0,
            rests_until: None,
            counts: Counts::default(),
        }
    }

    /// Opens a question that is to be answered before `end` and returns its number; or gives `about` back if the
    /// dispatcher counts as dead.
    pub fn ask(&mut self, now: Moment, end: Moment, flow: Flow, about: T) -> Result<u64, T> {
        if self.rests(now) {
            self.counts.dead += 1;
            return Err(about);
        }
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        self.counts.asked += 1;
        self.open.insert(number, Open { flow, end, about });
        self.ends.insert((end, number));
        Ok(number)
    }

    /// Takes an answer. `can_serve` says whether a data server could serve what was asked about.
    pub fn handle_reply(
        &mut self,
        now: Moment,
        reply: &Reply,
        can_serve: impl FnOnce(&T, Address) -> bool,
    ) -> ReplyOutcome<T> {
        let is_of = |open: &Open<T>| open.flow == reply.flow;
        if !self.open.get(&reply.number).is_some_and(is_of) {
            // A late answer is no lie: its question was asked.
            let ahead = self.next.wrapping_sub(reply.number).wrapping_sub(1) > u64::MAX / 2;
            if ahead || self.open.contains_key(&reply.number) {
                self.counts.lie += 1;
            }
            return ReplyOutcome::Unasked;
        }
        let Some(Open { about, end, .. }) = self.open.remove(&reply.number) else {
            return ReplyOutcome::Unasked;
        };
        self.ends.remove(&(end, reply.number));
        if end <= now {
            self.note_late(now);
            return ReplyOutcome::Nothing(about);
        }
        self.late_in_a_row = 0;
        self.rests_until = None;
        match reply.server {
            Some(server) if can_serve(&about, server) => {
                self.counts.answered += 1;
                ReplyOutcome::Answer(about, server, reply.lifetime())
            }
            Some(_) => {
                self.counts.lie += 1;
                ReplyOutcome::Nothing(about)
            }
            None => ReplyOutcome::Nothing(about),
        }
    }

    /// For how long it is of no use to ask, because the dispatcher counts as dead; `None` if it does not.
    pub fn rest(&self, now: Moment) -> Option<Duration> {
        let until = self.rests_until.filter(|until| now < *until)?;
        Some(until.since(now))
    }

    /// What a question was about whose deadline has passed, if there is one.
    pub fn poll(&mut self, now: Moment) -> Option<T> {
        let first = self.ends.first().copied();
        let (end, number) = first.filter(|(end, _)| *end <= now)?;
        self.ends.remove(&(end, number));
        let Open { about, .. } = self.open.remove(&number)?;
        self.note_late(now);
        Some(about)
    }

    /// When to call [`DispatcherClient::poll`] again.
    pub fn next_timeout(&self) -> Option<Moment> {
        self.ends.first().map(|(end, _)| *end)
    }

    /// The results of all questions so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    fn rests(&self, now: Moment) -> bool {
        match self.rests_until {
            Some(until) if now < until => true,
            // A single question tries whether the dispatcher answers again.
            Some(_) => !self.open.is_empty(),
            None => false,
        }
    }

    fn note_late(&mut self, now: Moment) {
        self.counts.late += 1;
        self.late_in_a_row += 1;
        if self.late_in_a_row >= DEAD_AFTER {
            self.rests_until = Some(now + REST);
        }
    }
}
