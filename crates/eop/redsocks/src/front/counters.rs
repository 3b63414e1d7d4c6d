//! The counters of a front.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counters of sessions. Each session is counted once by what its client speaks, and then once for each thing that
/// became of it.
#[derive(Debug, Default)]
pub struct Counters {
    /// Clients that speak EOP.
    pub eop: Count,
    /// Clients that speak plain TCP.
    pub plain: Count,
    /// EOP clients that were redirected at the beginning, with the time since they had connected.
    pub redirected: Latency,
    /// EOP clients that were redirected later, between two requests.
    pub redirected_between: Count,
    /// EOP clients that came back, because nobody answers where they were sent.
    pub fell_back: Count,
    /// Plain clients that got a 307, with the time since they had connected.
    pub located: Latency,
    /// Sessions that were relayed to the server behind this front, or to another one.
    pub relayed: Count,
    /// Clients that had to show a token and did not, or showed a bad one.
    pub refused: Count,
    /// Sessions that were cut off for another reason: one end broke off, or no server could be reached.
    pub reset: Count,
}

/// Counts how often something happened.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

/// Counts how often something happened, and adds up how long it took.
#[derive(Debug, Default)]
pub struct Latency {
    count: Count,
    nanos: AtomicU64,
}

impl Counters {
    /// The counts of all counters, by name.
    pub fn all(&self) -> [(&'static str, u64); 9] {
        [
            ("eop", self.eop.get()),
            ("plain", self.plain.get()),
            ("redirected", self.redirected.count()),
            ("redirected_between", self.redirected_between.get()),
            ("fell_back", self.fell_back.get()),
            ("located", self.located.count()),
            ("relayed", self.relayed.get()),
            ("refused", self.refused.get()),
            ("reset", self.reset.get()),
        ]
    }
}

impl Count {
    /// The count.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Latency {
    /// The count.
    pub fn count(&self) -> u64 {
        self.count.get()
    }

    /// The sum of all times.
    pub fn total(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(Ordering::Relaxed))
    }

    pub(super) fn add(&self, took: Duration) {
        // The time of one session is far below 500 years.
        (self.nanos).fetch_add(took.as_nanos() as u64, Ordering::Relaxed);
        self.count.add();
    }
}
