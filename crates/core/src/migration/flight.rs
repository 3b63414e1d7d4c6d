//! Batches that are under way: sent, but not acknowledged yet.

use std::collections::BTreeMap;
use std::time::Duration;

use baton_abi::BATCH_WINDOW;
use baton_wire::{Taken, Tcbs};

use crate::Moment;

/// A batch that is not acknowledged is sent again after [`FIRST_WAIT`], then after twice as long, and so on, up
/// to [`LONGEST_WAIT`].
const FIRST_WAIT: Duration = Duration::from_millis(20);
const LONGEST_WAIT: Duration = Duration::from_millis(320);

/// When a batch that was sent more than this many sendings later has come, a batch is lost: packets overtake
/// each other, but not that far.
const OVERTAKEN: u64 = 16;

/// How many batches may be under way: [`BEGIN`] at first, one more for each that comes, half as many after a
/// loss. A network card does not keep more than [`WIDEST`] for a receiver that is busy for a moment.
const BEGIN: usize = 16;
const NARROWEST: usize = 4;
const WIDEST: usize = 128;

/// What one migration has sent, and what of it has come.
#[derive(Debug)]
pub struct Flight {
    under_way: BTreeMap<u32, UnderWay>,
    next: u32,
    window: usize,
    sendings: u64,
    /// The latest sending that is known to have come.
    newest: u64,
    resent: u64,
    /// When a batch came last, or when one was sent with nothing else under way.
    progressed: Moment,
}

#[derive(Debug)]
struct UnderWay {
    batch: Tcbs,
    sending: u64,
    due: Moment,
    wait: Duration,
}

impl Default for Flight {
    fn default() -> Self {
        Self {
            under_way: BTreeMap::new(),
            next: 0,
            window: BEGIN,
            sendings: 0,
            newest: 0,
            resent: 0,
            progressed: Moment::default(),
        }
    }
}

impl Flight {
    /// The number of the next new batch; `None` if none may be sent now.
    pub fn vacancy(&self) -> Option<u32> {
        let first = self.under_way.keys().next().copied().unwrap_or(self.next);
        // A TAKEN message covers at most BATCH_WINDOW batches.
        let fits = self.under_way.len() < self.window && self.next - first < BATCH_WINDOW;
        fits.then_some(self.next)
    }

    /// Notes that a new batch is sent now, and returns it.
    pub fn send(&mut self, now: Moment, batch: Tcbs) -> Tcbs {
        if self.under_way.is_empty() {
            self.progressed = now;
        }
        self.next = batch.batch + 1;
        self.sendings += 1;
        let sent = UnderWay {
            batch: batch.clone(),
            sending: self.sendings,
            due: now + FIRST_WAIT,
            wait: FIRST_WAIT,
        };
        self.under_way.insert(batch.batch, sent);
        batch
    }

    /// A batch that is to be sent again now, if there is one. It counts as a loss.
    pub fn resend(&mut self, now: Moment) -> Option<Tcbs> {
        let late = self.under_way.values_mut().find(|sent| sent.due <= now)?;
        self.sendings += 1;
        self.resent += 1;
        late.sending = self.sendings;
        late.wait = (late.wait * 2).min(LONGEST_WAIT);
        late.due = now + late.wait;
        self.window = (self.window / 2).max(NARROWEST);
        Some(late.batch.clone())
    }

    /// Takes an acknowledgement. Returns how many entries are in the batches that are newly known to have come.
    pub fn acknowledge(&mut self, now: Moment, taken: &Taken) -> usize {
        let came: Vec<u32> = (self.under_way.keys().copied())
            .filter(|batch| taken.has(*batch))
            .collect();
        let mut entries = 0;
        for number in &came {
            if let Some(sent) = self.under_way.remove(number) {
                self.newest = self.newest.max(sent.sending);
                entries += sent.batch.entries().len();
            }
        }
        if !came.is_empty() {
            self.progressed = now;
            self.window = (self.window + came.len()).min(WIDEST);
        }
        for sent in self.under_way.values_mut() {
            if sent.sending + OVERTAKEN < self.newest {
                sent.due = now;
            }
        }
        entries
    }

    /// Whether nothing is under way.
    pub fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// The number of batches so far, and how often one was sent again.
    pub fn sent(&self) -> (u32, u64) {
        (self.next, self.resent)
    }

    /// When progress was made last; `None` if nothing is under way.
    pub fn waits_since(&self) -> Option<Moment> {
        (!self.is_empty()).then_some(self.progressed)
    }

    /// When the next batch is to be sent again.
    pub fn next_timeout(&self) -> Option<Moment> {
        self.under_way.values().map(|sent| sent.due).min()
    }
}
