//! What came of responses whose data server died.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use baton_agent::resume::Counters;
use baton_wire::Outcome;

/// Counted by the walker, and by the agent if there is one.
#[derive(Default)]
pub struct Counts {
    /// Data servers that died.
    pub deaths: AtomicU64,
    /// Connections in the middle of a response then.
    pub orphans: AtomicU64,
    /// How their responses began is known, all of the head,
    pub head_known: AtomicU64,
    /// some of it,
    pub head_partial: AtomicU64,
    /// or nothing.
    pub head_unknown: AtomicU64,
    /// How responses begin here was told so often.
    pub heads_told: AtomicU64,
    /// How responses begin elsewhere was heard so often,
    pub heads_heard: AtomicU64,
    /// and so many are remembered.
    pub heads_held: AtomicU64,
    /// A request was heard of, and is kept, whose response may go on from another data server than its owner.
    pub requests_heard: AtomicU64,
    /// Their responses go on.
    pub resumed: AtomicU64,
    /// They had all of it already.
    pub complete: AtomicU64,
    /// Nothing was kept of the request: told.
    pub not_kept: AtomicU64,
    /// Nobody was there to ask, or to answer: told.
    pub nobody: AtomicU64,
    /// Responses that were to leave a data server that drains,
    pub moves: AtomicU64,
    /// have come to another one,
    pub moved: AtomicU64,
    /// stay where they are for this reason, or until they are looked at again,
    stayed: [AtomicU64; 7],
    /// because it is not known how they began,
    pub stayed_unknown: AtomicU64,
    /// because nobody has answered,
    pub unanswered: AtomicU64,
    /// or had to be resumed, because their owner was gone before they had.
    pub move_orphans: AtomicU64,
    /// By reason of the last one that was asked: told.
    refused: [AtomicU64; 6],
    agent: OnceLock<Arc<Counters>>,
}

/// The reasons in the order of `stayed`.
const STAYS: [(Outcome, &str); 7] = [
    (Outcome::Complete, "move_stayed_complete"),
    (Outcome::Unreachable, "move_stayed_unreachable"),
    (Outcome::Status, "move_stayed_status"),
    (Outcome::NoLength, "move_stayed_no_length"),
    (Outcome::Length, "move_stayed_length"),
    (Outcome::Differs, "move_stayed_differs"),
    (Outcome::Full, "move_stayed_full"),
];

/// The reasons in the order of `refused`.
const REASONS: [(Outcome, &str); 6] = [
    (Outcome::Unreachable, "resume_refused_unreachable"),
    (Outcome::Status, "resume_refused_status"),
    (Outcome::NoLength, "resume_refused_no_length"),
    (Outcome::Length, "resume_refused_length"),
    (Outcome::Differs, "resume_refused_differs"),
    (Outcome::Full, "resume_refused_full"),
];

impl Counts {
    /// One more that nobody has the rest of.
    pub fn note_refused(&self, why: Option<Outcome>) {
        let place = REASONS.iter().position(|(reason, _)| why == Some(*reason));
        match place {
            Some(place) => self.refused[place].fetch_add(1, Relaxed),
            None => self.nobody.fetch_add(1, Relaxed),
        };
    }

    /// One more that stays where it is.
    pub fn note_stays(&self, why: Option<Outcome>) {
        let place = STAYS.iter().position(|(reason, _)| why == Some(*reason));
        match place {
            Some(place) => self.stayed[place].fetch_add(1, Relaxed),
            None => self.unanswered.fetch_add(1, Relaxed),
        };
    }

    /// Shows what this agent does as well.
    pub fn follow(&self, agent: Arc<Counters>) {
        // There is one agent in a daemon's life.
        let _ = self.agent.set(agent);
    }

    /// By name.
    pub fn get(&self) -> Vec<(&'static str, u64)> {
        let mut all = vec![
            ("resume_deaths", self.deaths.load(Relaxed)),
            ("resume_orphans", self.orphans.load(Relaxed)),
            ("resume_head_known", self.head_known.load(Relaxed)),
            ("resume_head_partial", self.head_partial.load(Relaxed)),
            ("resume_head_unknown", self.head_unknown.load(Relaxed)),
            ("resume_heads_told", self.heads_told.load(Relaxed)),
            ("resume_heads_heard", self.heads_heard.load(Relaxed)),
            ("resume_heads_held", self.heads_held.load(Relaxed)),
            ("resume_requests_heard", self.requests_heard.load(Relaxed)),
            ("resume_resumed", self.resumed.load(Relaxed)),
            ("resume_complete", self.complete.load(Relaxed)),
            ("resume_not_kept", self.not_kept.load(Relaxed)),
            ("resume_nobody", self.nobody.load(Relaxed)),
            ("move_begun", self.moves.load(Relaxed)),
            ("move_done", self.moved.load(Relaxed)),
            ("move_stayed_unknown", self.stayed_unknown.load(Relaxed)),
            ("move_stayed_unanswered", self.unanswered.load(Relaxed)),
            ("move_orphaned", self.move_orphans.load(Relaxed)),
        ];
        for ((_, name), count) in STAYS.iter().zip(&self.stayed) {
            all.push((*name, count.load(Relaxed)));
        }
        for ((_, name), count) in REASONS.iter().zip(&self.refused) {
            all.push((*name, count.load(Relaxed)));
        }
        if let Some(agent) = self.agent.get() {
            all.extend([
                ("agent_ordered", agent.ordered.load(Relaxed)),
                ("agent_begun", agent.begun.load(Relaxed)),
                ("agent_foreign", agent.foreign.load(Relaxed)),
                ("agent_failed", agent.failed.load(Relaxed)),
                ("agent_finished", agent.finished.load(Relaxed)),
            ]);
        }
        all
    }
}
