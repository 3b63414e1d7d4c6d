//! What a front has done.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Each session is counted once by what its client speaks, and then by each thing that became of it.
#[derive(Debug, Default)]
pub struct Counters {
    /// Clients that speak EOP.
    pub eop: Count,
    /// Clients that do not.
    pub plain: Count,
    /// EOP clients that were redirected at the beginning; how long after they had connected.
    pub redirected: Latency,
    /// Those that were redirected later, between two requests.
    pub redirected_between: Count,
    /// Those that came back, because nobody answers where they were sent.
    pub fell_back: Count,
    /// Plain clients that got a 307; how long after they had connected.
    pub located: Latency,
    /// Sessions that were relayed to the server behind this front, or to another.
    pub relayed: Count,
    /// Clients that showed no good token where they had to, or a bad one.
    pub refused: Count,
    /// Sessions that were cut off otherwise: one end broke off, or nobody could serve.
    pub reset: Count,
}

/// How often.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

/// How often, and how long that took in all.
#[derive(Debug, Default)]
pub struct Latency {
    count: Count,
    nanos: AtomicU64,
}

impl Counters {
    /// All that are counts, by name.
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
    /// The number.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Latency {
    /// How often.
    pub fn count(&self) -> u64 {
        self.count.get()
    }

    /// All of them together.
    pub fn total(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(Ordering::Relaxed))
    }

    pub(super) fn add(&self, took: Duration) {
        // Of one session: far less than 500 years.
        (self.nanos).fetch_add(took.as_nanos() as u64, Ordering::Relaxed);
        self.count.add();
    }
}
