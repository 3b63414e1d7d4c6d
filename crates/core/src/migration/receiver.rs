//! The receiving end: the connection server that takes over.

use std::time::Duration;

use baton_abi::BATCH_WINDOW;
use baton_wire::{Address, LeftOut, Taken, TakenRefusal, Tcbs};

use crate::Moment;

/// A sender that is silent for this long has gone. It is longer than the time that the sender itself waits.
const SILENCE: Duration = Duration::from_secs(10);

/// At most this many batches are acknowledged together.
const TOGETHER: u32 = 8;

/// Receives the entries of one node at a time.
#[derive(Debug, Default)]
pub struct Receiver {
    current: Option<Inbound>,
    /// The last migration that ended; its batches may come once more.
    ended: Option<(Address, Taken)>,
    answer: Option<(Address, Taken)>,
    happened: Option<Happened>,
}

#[derive(Debug)]
struct Inbound {
    from: Address,
    taken: Taken,
    last: Option<u32>,
    heard: Moment,
    /// How many batches have come since the last acknowledgement.
    unsaid: u32,
}

/// An event that is worth a line in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    /// A node's entries begin to come.
    Began(Address),
    /// All of a node's entries have come.
    Ended(Address, Taken),
    /// The sender has given up, or this node cannot take its entries.
    Aborted(Address, Taken),
    /// The sender is no longer heard.
    Lost(Address, Taken),
}

impl Receiver {
    /// Takes a batch that has come. If this returns `true` its entries are to be taken, and [`Receiver::took`]
    /// must be called before anything else. `allowed` says whether this node takes entries from the sender at
    /// all.
    pub fn handle(
        &mut self,
        now: Moment,
        from: Address,
        batch: &Tcbs,
        allowed: Result<(), TakenRefusal>,
    ) -> bool {
        self.forget_the_silent(now);
        if let Err(refusal) = allowed {
            self.refuse(from, batch.migration, refusal);
            return false;
        }
        if batch.flags.abort {
            self.abort(from, batch.migration);
            return false;
        }
        if batch.flags.first && batch.batch == 0 && !self.begin(now, from, batch.migration) {
            return false;
        }
        match &mut self.current {
            Some(inbound) if inbound.is(from, batch.migration) => inbound.note(now, batch),
            _ => {
                self.answer_of_old(from, batch);
                false
            }
        }
    }

    /// Says what became of the entries of the batch that came last: how many were taken, and how many were left
    /// out for each reason.
    pub fn took(&mut self, taken: u32, left_out: [u32; LeftOut::ALL.len()]) {
        let Some(inbound) = &mut self.current else {
            return;
        };
        inbound.taken.taken = inbound.taken.taken.saturating_add(taken);
        for (sum, more) in inbound.taken.left_out.iter_mut().zip(left_out) {
            *sum = sum.saturating_add(more);
        }
        if inbound.unsaid >= TOGETHER {
            self.acknowledge();
        }
        self.end_if_all_came();
    }

    /// Ends the migration: neither the entries that came last nor any others can be taken.
    pub fn fail(&mut self) {
        if let Some(inbound) = self.current.take() {
            self.refuse(inbound.from, inbound.taken.migration, TakenRefusal::NoTable);
            self.happened = Some(Happened::Aborted(inbound.from, inbound.taken));
        }
    }

    /// Nothing more has come for now, so what is not acknowledged yet is acknowledged.
    pub fn pause(&mut self) {
        if self
            .current
            .as_ref()
            .is_some_and(|inbound| inbound.unsaid > 0)
        {
            self.acknowledge();
        }
    }

    /// The next message to send, and to whom.
    pub fn poll(&mut self) -> Option<(Address, Taken)> {
        self.answer.take()
    }

    /// An event that is worth a line in the log.
    pub fn happened(&mut self, now: Moment) -> Option<Happened> {
        self.forget_the_silent(now);
        self.happened.take()
    }

    /// Whether entries are coming.
    pub fn is_busy(&self) -> bool {
        self.current.is_some()
    }

    /// Begins a migration. Returns `false` if nothing of it is to be taken.
    fn begin(&mut self, now: Moment, from: Address, migration: u64) -> bool {
        let known = (self.current.as_ref()).map(|inbound| (inbound.from, inbound.taken.migration));
        let ended = (self.ended.as_ref()).map(|(of, taken)| (*of, taken.migration));
        match known {
            // The first batch has come again, or late.
            Some((of, number)) if of == from && number >= migration => return true,
            Some((of, _)) if of != from => {
                self.refuse(from, migration, TakenRefusal::Busy);
                return false;
            }
            _ => {}
        }
        if ended.is_some_and(|(of, number)| of == from && number >= migration) {
            return true;
        }
        self.current = Some(Inbound {
            from,
            taken: Taken {
                migration,
                ..Taken::default()
            },
            last: None,
            heard: now,
            unsaid: 0,
        });
        self.happened = Some(Happened::Began(from));
        true
    }

    /// Answers a batch that is of no current migration.
    fn answer_of_old(&mut self, from: Address, batch: &Tcbs) {
        let later = |number: u64| number > batch.migration;
        if let Some((of, taken)) = self.ended
            && of == from
        {
            if taken.migration == batch.migration {
                self.answer = Some((from, taken));
                return;
            }
            if later(taken.migration) {
                return;
            }
        }
        let current = self.current.as_ref();
        if current.is_some_and(|of| of.from == from && later(of.taken.migration)) {
            return;
        }
        self.refuse(from, batch.migration, TakenRefusal::Unknown);
    }

    fn abort(&mut self, from: Address, migration: u64) {
        if let Some(inbound) = self.current.take_if(|inbound| inbound.is(from, migration)) {
            self.happened = Some(Happened::Aborted(from, inbound.taken));
            self.ended = Some((from, inbound.taken));
        }
    }

    fn end_if_all_came(&mut self) {
        let ended =
            |inbound: &mut Inbound| (inbound.last).is_some_and(|last| inbound.taken.next > last);
        if let Some(inbound) = self.current.take_if(ended) {
            self.answer = Some((inbound.from, inbound.taken));
            self.ended = self.answer;
            self.happened = Some(Happened::Ended(inbound.from, inbound.taken));
        }
    }

    fn forget_the_silent(&mut self, now: Moment) {
        let is_silent = |inbound: &mut Inbound| now.since(inbound.heard) >= SILENCE;
        if let Some(inbound) = self.current.take_if(is_silent) {
            self.happened = Some(Happened::Lost(inbound.from, inbound.taken));
        }
    }

    fn acknowledge(&mut self) {
        if let Some(inbound) = &mut self.current {
            inbound.unsaid = 0;
            self.answer = Some((inbound.from, inbound.taken));
        }
    }

    fn refuse(&mut self, to: Address, migration: u64, refusal: TakenRefusal) {
        let taken = Taken {
            migration,
            refusal: Some(refusal),
            ..Taken::default()
        };
        self.answer = Some((to, taken));
    }
}

impl Inbound {
    fn is(&self, from: Address, migration: u64) -> bool {
        self.from == from && self.taken.migration == migration
    }

    /// Notes a batch. Returns whether it is new.
    fn note(&mut self, now: Moment, batch: &Tcbs) -> bool {
        self.heard = now;
        self.unsaid += 1;
        let beyond = batch.batch.wrapping_sub(self.taken.next) >= BATCH_WINDOW;
        if self.taken.has(batch.batch) || beyond {
            return false;
        }
        if batch.flags.last {
            self.last = Some(batch.batch);
        }
        self.taken.set(batch.batch);
        while self.taken.came[0] & 1 != 0 {
            self.advance();
        }
        true
    }

    /// Moves the next number up by one: all below it have come.
    fn advance(&mut self) {
        self.taken.next += 1;
        let came = self.taken.came;
        for (at, word) in self.taken.came.iter_mut().enumerate() {
            let above = came.get(at + 1).copied().unwrap_or(0);
            *word = came[at] >> 1 | above << 63;
        }
    }
}
