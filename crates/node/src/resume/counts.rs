//! Counters of responses that were resumed after a death or moved by a drain.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use baton_agent::resume::Counters;
use baton_wire::Outcome;

/// The counters of the task that resumes and moves responses, and of the agent if there is one.
#[derive(Default)]
pub struct Counts {
    /// Counts data servers that died.
    pub deaths: AtomicU64,
    /// Counts connections of dead data servers that were not at rest and whose client did not have all of the response.
    pub orphans: AtomicU64,
    /// Counts kept requests of dead data servers for which the head of the response is fully known.
    pub head_known: AtomicU64,
    /// Counts kept requests of dead data servers for which only a part of the response's head was seen.
    pub head_partial: AtomicU64,
    /// Counts kept requests of dead data servers for which the head of the response is unknown.
    pub head_unknown: AtomicU64,
    /// Counts heads of this node's own responses that it told to connection servers.
    pub heads_told: AtomicU64,
    /// Counts heads that other nodes told this node.
    pub heads_heard: AtomicU64,
    /// The number of heads that are remembered.
    pub heads_held: AtomicU64,
    /// Counts requests that owners told and that are kept, because their responses may go on from other data servers.
    pub requests_heard: AtomicU64,
    /// Counts responses that go on from another data server after a death.
    pub resumed: AtomicU64,
    /// Counts clients that turned out to have all of their response.
    pub complete: AtomicU64,
    /// Counts clients that got a RST because their request was not kept or its response cannot be resumed.
    pub not_kept: AtomicU64,
    /// Counts clients that got a RST because no data server was there to ask, or none answered.
    pub nobody: AtomicU64,
    /// Counts responses that were to leave a data server that drains.
    pub moves: AtomicU64,
    /// Counts responses that have moved from a draining data server to another one.
    pub moved: AtomicU64,
    /// Counts responses that stay at a draining data server, at least until they are looked at again; by the reasons
    /// in `STAYS`.
    stayed: [AtomicU64; 7],
    /// Counts responses that stay at a draining data server because it is not known how they began.
    pub stayed_unknown: AtomicU64,
    /// Counts responses that stay at a draining data server because nobody was there to ask, or nobody answered.
    pub unanswered: AtomicU64,
    /// Counts responses of draining data servers that had to be resumed, because the old owner no longer had the
    /// connection and the next one did not have it yet.
    pub move_orphans: AtomicU64,
    /// Counts clients that got a RST because nobody had the rest of their response, by the reason of the data server
    /// that was asked last; see `REASONS`.
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
    /// Counts a response whose rest nobody has, under the reason of the last data server that was asked.
    pub fn note_refused(&self, why: Option<Outcome>) {
        let place = REASONS.iter().position(|(reason, _)| why == Some(*reason));
        match place {
            Some(place) => self.refused[place].fetch_add(1, Relaxed),
            None => self.nobody.fetch_add(1, Relaxed),
        };
    }

    /// Counts a response that stays where it is, under its reason.
    pub fn note_stays(&self, why: Option<Outcome>) {
        let place = STAYS.iter().position(|(reason, _)| why == Some(*reason));
        match place {
            Some(place) => self.stayed[place].fetch_add(1, Relaxed),
            None => self.unanswered.fetch_add(1, Relaxed),
        };
    }

    /// Has [`Counts::get`] include the counters of this agent.
    pub fn follow(&self, agent: Arc<Counters>) {
        // A daemon starts only one agent, so this is not set yet.
        let _ = self.agent.set(agent);
    }

    /// Returns all counters with their names.
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
            all.extend(agent.all());
        }
        all
    }
}
