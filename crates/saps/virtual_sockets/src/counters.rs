//! The agent's counters, for the metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// The agent's counters. Each counts a decision or an end. Together with the hooks' counters (`enum app_counter`) they
/// say what became of every connection.
#[derive(Debug, Default)]
pub struct Counters {
    /// Calls that the far end answered.
    pub calls_answered: AtomicU64,
    /// Calls that the far end refused, with whatever error; the program has been told.
    pub calls_refused: AtomicU64,
    /// Calls that timed out at the far end; the program's own timer ends them.
    pub calls_timed_out: AtomicU64,
    /// Calls whose program gave up before the far end answered.
    pub calls_given_up: AtomicU64,
    /// Calls whose far end answered after the program's socket was gone; the far end is reset.
    pub calls_too_late: AtomicU64,
    /// Refusals of the I/O server to listen on a port. The agent asks again for as long as the program listens.
    pub listens_refused: AtomicU64,
    /// Clients' connections that reached a program.
    pub arrivals: AtomicU64,
    /// Clients' connections that no program's listener took; they are reset.
    pub arrivals_refused: AtomicU64,
    /// Connections that came to a regular end in both directions.
    pub finished: AtomicU64,
    /// Connections that were reset at one end, and so at the other.
    pub reset: AtomicU64,
}

impl Counters {
    /// All counters, with the metrics' labels.
    pub fn all(&self) -> [(&'static str, u64); 10] {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [
            ("agent_calls_answered", read(&self.calls_answered)),
            ("agent_calls_refused", read(&self.calls_refused)),
            ("agent_calls_timed_out", read(&self.calls_timed_out)),
            ("agent_calls_given_up", read(&self.calls_given_up)),
            ("agent_calls_too_late", read(&self.calls_too_late)),
            ("agent_listens_refused", read(&self.listens_refused)),
            ("agent_arrivals", read(&self.arrivals)),
            ("agent_arrivals_refused", read(&self.arrivals_refused)),
            ("agent_finished", read(&self.finished)),
            ("agent_reset", read(&self.reset)),
        ]
    }
}

pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
