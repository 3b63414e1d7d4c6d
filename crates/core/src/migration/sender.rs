//! The sending end: the connection server whose entries go over.

use std::collections::VecDeque;
use std::time::Duration;

use baton_wire::{BatchFlags, Taken, TakenRefusal, TcbEntry, Tcbs};

use super::PATIENCE;
use super::flight::Flight;
use super::passes::Passes;
use crate::Moment;

/// Requests begin to wait, for one more pass, after a pass of at most [`SMALL_PASS`] entries, or after
/// [`MOST_PASSES`] passes: where all connections are busy, all entries change all the time.
const SMALL_PASS: usize = 64;
const MOST_PASSES: usize = 3;

/// What the caller of a [`Sender`] has to do next.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Send this to the receiver.
    Send(Tcbs),
    /// Read the table, and pass what is in it to [`Sender::read`].
    Read,
    /// Make requests wait from now on, so that no entry changes in what matters, then call [`Sender::held`].
    Hold,
    /// Let what waits, and all that comes, go to the receiver; move the address; and pass the result to
    /// [`Sender::transferred`].
    Transfer,
    /// The migration has ended, with this result; no step follows.
    End(Result<Report, Failure>),
}

/// What a migration has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The number of entries of each pass; the last pass went over after the address.
    pub passes: Vec<usize>,
    /// The number of batches.
    pub batches: u32,
    /// How often a batch was sent again.
    pub resent: u64,
    /// The receiver's last word: entries in its table, and those left out, by `LeftOut`.
    pub taken: Taken,
    /// From when the table was first read until all that was in it had come.
    pub copied_in: Duration,
    /// How long requests waited until they could go on at the receiver.
    pub held_for: Duration,
    /// From the beginning to the end.
    pub took: Duration,
}

/// Why a migration ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The receiver never answered.
    NoAnswer,
    /// The receiver has stopped answering. The address is where it was.
    Silent,
    /// The receiver refuses to take entries.
    Refused(TakenRefusal),
    /// The address could not be moved.
    NotTransferred(String),
    /// [`Sender::abort`] was called.
    Aborted,
    /// The address has moved, but not all of what changed last has gone over: CLAIM and NONE repair that.
    LastPassLost(Box<Failure>),
}

/// How far the migration is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What the sender is doing.
    pub stage: Stage,
    /// The number of the current pass, from 1; 0 before the first.
    pub pass: usize,
    /// How many entries of this pass the receiver has.
    pub came: usize,
    /// How many entries this pass has in all.
    pub entries: usize,
}

/// What the sender of a migration does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Waiting for the receiver's first answer.
    Opening,
    /// Sending what the table had, or what has changed.
    Copying,
    /// Waiting for the address to move.
    Transferring,
    /// Sending what changed last, after the address has moved.
    Finishing,
    /// The migration has ended.
    Ended,
}

/// The sending end of one migration.
#[derive(Debug)]
pub struct Sender {
    number: u64,
    state: State,
    flight: Flight,
    passes: Passes,
    /// Entries of this pass that were not sent yet.
    waiting: VecDeque<TcbEntry>,
    came: usize,
    switched: bool,
    /// Since when requests have been waiting.
    held_at: Option<Moment>,
    /// Whether the very last batch has been sent.
    closed: bool,
    began: Moment,
    read_at: Option<Moment>,
    report: Report,
}

#[derive(Debug)]
enum State {
    Opening,
    WantsRead,
    Reading,
    Sending,
    WantsHold,
    Holding,
    WantsTransfer,
    Transferring,
    Failed(Failure),
    Aborting(Failure),
    Done,
    Ended,
}

impl Sender {
    /// Begins a migration. `number` must be above that of every earlier migration of this node.
    pub fn new(now: Moment, number: u64) -> Self {
        Self {
            number,
            state: State::Opening,
            flight: Flight::default(),
            passes: Passes::default(),
            waiting: VecDeque::new(),
            came: 0,
            switched: false,
            held_at: None,
            closed: false,
            began: now,
            read_at: None,
            report: Report::default(),
        }
    }

    /// The next thing to do now; `None` if there is nothing before [`Sender::next_timeout`] or an answer.
    pub fn poll(&mut self, now: Moment) -> Option<Step> {
        self.look_at_patience(now);
        match std::mem::replace(&mut self.state, State::Ended) {
            State::WantsRead => {
                self.state = State::Reading;
                self.read_at.get_or_insert(now);
                Some(Step::Read)
            }
            State::WantsHold => {
                self.state = State::Holding;
                self.held_at = Some(now);
                Some(Step::Hold)
            }
            State::WantsTransfer => {
                self.state = State::Transferring;
                self.report.held_for = self.held_at.map_or(Duration::ZERO, |at| now.since(at));
                Some(Step::Transfer)
            }
            State::Aborting(failure) => {
                self.state = State::Failed(failure);
                let flags = BatchFlags {
                    abort: true,
                    ..BatchFlags::default()
                };
                Some(Step::Send(Tcbs::new(self.number, 0, flags, &[])))
            }
            State::Failed(failure) => {
                let repaired = self.switched && !matches!(failure, Failure::LastPassLost(_));
                Some(Step::End(Err(if repaired {
                    Failure::LastPassLost(Box::new(failure))
                } else {
                    failure
                })))
            }
            State::Done => Some(Step::End(Ok(self.finish(now)))),
            State::Ended => None,
            state @ (State::Reading | State::Holding | State::Transferring) => {
                self.state = state;
                None
            }
            state @ (State::Opening | State::Sending) => {
                let is_open = !matches!(state, State::Opening);
                self.state = state;
                match self.batch(now) {
                    Some(batch) => Some(Step::Send(batch)),
                    // An empty pass is over at once.
                    None if is_open && self.has_all_come() => {
                        self.end_pass(now);
                        self.poll(now)
                    }
                    None => None,
                }
            }
        }
    }

    /// Takes the contents of the table, as [`Step::Read`] asked for.
    pub fn read(&mut self, entries: Vec<TcbEntry>) {
        if !matches!(self.state, State::Reading) {
            return;
        }
        let changed = self.passes.next(entries);
        self.report.passes.push(changed.len());
        self.waiting = changed.into();
        self.came = 0;
        self.state = State::Sending;
    }

    /// Requests wait now, as [`Step::Hold`] asked for.
    pub fn held(&mut self) {
        if matches!(self.state, State::Holding) {
            self.state = State::WantsRead;
        }
    }

    /// The address has moved, or has not for the reason in the error.
    pub fn transferred(&mut self, result: Result<(), String>) {
        if !matches!(self.state, State::Transferring) {
            return;
        }
        match result {
            Ok(()) => {
                self.switched = true;
                self.state = State::WantsRead;
            }
            Err(why) => self.state = State::Aborting(Failure::NotTransferred(why)),
        }
    }

    /// Ends the migration early. The receiver keeps the entries that it has, which expire there.
    pub fn abort(&mut self) {
        self.fail(Failure::Aborted);
    }

    /// Takes an answer of the receiver.
    pub fn handle_taken(&mut self, now: Moment, taken: &Taken) {
        if taken.migration != self.number || !self.runs() {
            return;
        }
        if let Some(refusal) = taken.refusal {
            self.state = State::Failed(Failure::Refused(refusal));
            return;
        }
        self.came += self.flight.acknowledge(now, taken);
        // Answers may overtake each other; both numbers only grow, so the greater ones are the later ones.
        if taken.taken >= self.report.taken.taken && taken.next >= self.report.taken.next {
            self.report.taken = *taken;
        }
        if !self.flight.is_empty() {
            return;
        }
        match self.state {
            State::Opening => self.state = State::WantsRead,
            State::Sending if self.waiting.is_empty() => self.end_pass(now),
            _ => {}
        }
    }

    /// When [`Sender::poll`] has something to do if no answer comes before; `None` if it waits for a
    /// call or has ended.
    pub fn next_timeout(&self) -> Option<Moment> {
        match self.state {
            State::Ended | State::Reading | State::Holding | State::Transferring => None,
            State::Opening | State::Sending => {
                let patience = self.flight.waits_since().map(|since| since + PATIENCE);
                self.flight.next_timeout().min(patience)
            }
            _ => Some(Moment::default()),
        }
    }

    /// How far the migration is.
    pub fn progress(&self) -> Progress {
        let stage = match self.state {
            State::Opening => Stage::Opening,
            State::Failed(_) | State::Aborting(_) | State::Done | State::Ended => Stage::Ended,
            State::WantsTransfer | State::Transferring => Stage::Transferring,
            _ if self.switched => Stage::Finishing,
            _ => Stage::Copying,
        };
        Progress {
            stage,
            pass: self.report.passes.len(),
            came: self.came,
            entries: self.report.passes.last().copied().unwrap_or(0),
        }
    }

    fn runs(&self) -> bool {
        !matches!(
            self.state,
            State::Failed(_) | State::Aborting(_) | State::Done | State::Ended
        )
    }

    fn fail(&mut self, failure: Failure) {
        if self.runs() {
            self.state = State::Aborting(failure);
        }
    }

    fn look_at_patience(&mut self, now: Moment) {
        let Some(since) = self.flight.waits_since() else {
            return;
        };
        if now.since(since) >= PATIENCE {
            self.fail(if matches!(self.state, State::Opening) {
                Failure::NoAnswer
            } else {
                Failure::Silent
            });
        }
    }

    /// The batch that is to be sent now, if there is one.
    fn batch(&mut self, now: Moment) -> Option<Tcbs> {
        if let Some(again) = self.flight.resend(now) {
            return Some(again);
        }
        let opens = matches!(self.state, State::Opening);
        let number = self.flight.vacancy()?;
        let wanted = if opens {
            number == 0
        } else {
            // The last batch must be sent even if it has no entries, because it marks the end.
            !self.waiting.is_empty() || self.switched && !self.closed
        };
        if !wanted {
            return None;
        }
        let count = self.waiting.len().min(Tcbs::ENTRIES);
        let entries: Vec<TcbEntry> = self.waiting.drain(..count).collect();
        let flags = BatchFlags {
            first: opens,
            last: !opens && self.switched && self.waiting.is_empty(),
            abort: false,
        };
        self.closed |= flags.last;
        let batch = Tcbs::new(self.number, number, flags, &entries);
        Some(self.flight.send(now, batch))
    }

    /// Whether all batches of this pass have come.
    fn has_all_come(&self) -> bool {
        self.flight.is_empty() && self.waiting.is_empty()
    }

    /// Chooses the next state when all of this pass has come.
    fn end_pass(&mut self, now: Moment) {
        if let Some(read_at) = self.read_at
            && self.report.passes.len() == 1
        {
            self.report.copied_in = now.since(read_at);
        }
        let little = (self.report.passes.last()).is_some_and(|entries| *entries <= SMALL_PASS);
        self.state = if self.switched {
            State::Done
        } else if self.held_at.is_some() {
            State::WantsTransfer
        } else if little || self.report.passes.len() >= MOST_PASSES {
            State::WantsHold
        } else {
            State::WantsRead
        };
    }

    fn finish(&mut self, now: Moment) -> Report {
        (self.report.batches, self.report.resent) = self.flight.sent();
        self.report.took = now.since(self.began);
        self.report.clone()
    }
}
