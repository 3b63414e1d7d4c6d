//! Another candidate, and when and how it was heard.

use std::time::Duration;

use baton_wire::{Address, Candidate, CandidateState, Clock};

use crate::Moment;

/// Another candidate.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) address: Address,
    /// The candidate's priority: the lower the number, the more it is preferred.
    pub(super) priority: usize,
    heard: Option<Heard>,
}

#[derive(Clone, Copy, Debug)]
struct Heard {
    at: Moment,
    /// Since when the candidate has been heard without a pause.
    since: Moment,
    sent: Clock,
    said: Candidate,
}

impl Peer {
    pub(super) fn new(address: Address, priority: usize) -> Self {
        Self {
            address,
            priority,
            heard: None,
        }
    }

    /// Takes what the candidate said. Returns `false` if the same or a later message has already come. If none
    /// was taken for `detection` an earlier clock counts too: then the candidate's clock was set back.
    pub(super) fn hear(
        &mut self,
        now: Moment,
        sent: Clock,
        said: Candidate,
        detection: Duration,
    ) -> bool {
        let since = match self.heard {
            Some(before) if sent <= before.sent && now.since(before.at) < detection => {
                return false;
            }
            Some(before) if now.since(before.at) < detection => before.since,
            _ => now,
        };
        self.heard = Some(Heard {
            at: now,
            since,
            sent,
            said,
        });
        true
    }

    /// Whether the candidate was heard less than `detection` ago.
    pub(super) fn lives(&self, now: Moment, detection: Duration) -> bool {
        let heard = self.heard_at();
        heard.is_some_and(|at| now.since(at) < detection)
    }

    pub(super) fn heard_at(&self) -> Option<Moment> {
        self.heard.map(|heard| heard.at)
    }

    /// Whether the candidate last said that it is in front, or handing over.
    pub(super) fn is_front(&self) -> bool {
        let heard = self.heard.map(|heard| heard.said.state);
        heard.is_some_and(|state| state != CandidateState::Standby)
    }

    /// Of several candidates in front, the one with the greatest claim stays: by epoch, then by priority.
    pub(super) fn claim(&self) -> (u64, usize) {
        let epoch = self.heard.map_or(0, |heard| heard.said.epoch);
        (epoch, usize::MAX - self.priority)
    }

    /// For how long the candidate has been heard without a pause.
    pub(super) fn steady(&self, now: Moment) -> Duration {
        let since = self.steady_since();
        since.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// Since when the candidate has been heard without a pause.
    pub(super) fn steady_since(&self) -> Option<Moment> {
        self.heard.map(|heard| heard.since)
    }

    /// Counts the time without a pause from now on.
    pub(super) fn begin_again(&mut self, now: Moment) {
        if let Some(heard) = &mut self.heard {
            heard.since = now;
        }
    }
}
