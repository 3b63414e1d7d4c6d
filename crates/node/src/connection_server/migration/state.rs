//! What is known of migrations, for the command line, `baton status` and metrics.

use std::collections::BTreeMap;

use baton_core::migration::{Progress, Report, Stage};
use baton_wire::LeftOut;
use serde::{Deserialize, Serialize};

use crate::status;

/// The migration that is on, or was last, and what all together did.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct State {
    /// To whom the last one went that began here.
    pub to: Option<String>,
    /// How far it is; `None` when it has ended, or none has begun.
    pub running: Option<Running>,
    /// How it ended.
    pub ended: Option<Ended>,
    /// Whether the cluster addresses are not baton's to move.
    pub by_hand: bool,
    /// Since the daemon started.
    pub totals: Totals,
    /// Messages of the task that were dropped, by counter.
    #[serde(skip)]
    pub rejected: BTreeMap<u32, u64>,
}

/// How far a migration is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    /// What it does.
    pub stage: Doing,
    /// Which pass over the table.
    pub pass: usize,
    /// Entries of it that have come,
    pub came: usize,
    /// of so many.
    pub entries: usize,
}

/// What a migration does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Doing {
    /// It waits for the other node's first word.
    Asking,
    /// Entries go over.
    Copying,
    /// The addresses move.
    Moving,
    /// What changed until then goes over.
    Finishing,
}

/// How a migration ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// Well.
    Done(Summary),
    /// Not, and why.
    Failed(String),
}

/// A migration that ended well.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Entries of each pass; the last went over after the addresses.
    pub passes: Vec<usize>,
    /// Batches,
    pub batches: u32,
    /// and how often one was sent again.
    pub resent: u64,
    /// Entries that the other node has taken, each time it came.
    pub taken: u32,
    /// Those it has not: its table was full,
    pub full: u32,
    /// it has no such data server,
    pub no_owner: u32,
    /// no such service,
    pub no_service: u32,
    /// or a newer entry.
    pub older: u32,
    /// Milliseconds from the first look at the table until all that was in it had come,
    pub copied_ms: f64,
    /// for so long requests waited,
    pub held_ms: f64,
    /// and in all.
    pub took_ms: f64,
}

/// Sums since the daemon started.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Totals {
    /// Migrations that began here.
    pub begun: u64,
    /// Those of them that failed.
    pub failed: u64,
    /// Passes over the table.
    pub passes: u64,
    /// Entries that others have taken from here.
    pub sent: u64,
    /// Entries that others have refused.
    pub refused: u64,
    /// Batches that were sent again.
    pub resent: u64,
    /// Entries that were taken here.
    pub taken: u64,
    /// Entries that were left out here.
    pub left_out: u64,
    /// How long the last one took, milliseconds.
    pub last_ms: Option<f64>,
}

impl Running {
    /// `None` when it has ended.
    pub fn of(progress: Progress) -> Option<Self> {
        let stage = match progress.stage {
            Stage::Opening => Doing::Asking,
            Stage::Copying => Doing::Copying,
            Stage::Transferring => Doing::Moving,
            Stage::Finishing => Doing::Finishing,
            Stage::Ended => return None,
        };
        Some(Self {
            stage,
            pass: progress.pass,
            came: progress.came,
            entries: progress.entries,
        })
    }
}

impl Summary {
    /// Of what was done.
    pub fn of(report: &Report) -> Self {
        let left_out = |why: LeftOut| report.taken.left_out[why.index()];
        let ms = |time: std::time::Duration| time.as_secs_f64() * 1000.0;
        Self {
            passes: report.passes.clone(),
            batches: report.batches,
            resent: report.resent,
            taken: report.taken.taken,
            full: left_out(LeftOut::Full),
            no_owner: left_out(LeftOut::Owner),
            no_service: left_out(LeftOut::Service),
            older: left_out(LeftOut::Older),
            copied_ms: ms(report.copied_in),
            held_ms: ms(report.held_for),
            took_ms: ms(report.took),
        }
    }

    /// Entries that are not in the other node's table.
    pub fn left_out(&self) -> u32 {
        self.full + self.no_owner + self.no_service + self.older
    }
}

impl State {
    /// For `baton status`.
    pub fn shown(&self) -> status::Migration {
        let to = self.to.as_deref().unwrap_or("another node");
        let now = self.running.map(|running| match running.stage {
            Doing::Asking => format!("asks {to}"),
            Doing::Copying => format!(
                "pass {} to {to}: {} of {} entries",
                running.pass, running.came, running.entries
            ),
            Doing::Moving => format!("the cluster addresses move to {to}"),
            Doing::Finishing => format!("sends {to} what changed last"),
        });
        let totals = self.totals;
        status::Migration {
            now,
            begun: totals.begun,
            failed: totals.failed,
            passes: totals.passes,
            entries_sent: totals.sent,
            entries_refused: totals.refused,
            batches_resent: totals.resent,
            entries_taken: totals.taken,
            entries_left_out: totals.left_out,
            last_ms: totals.last_ms,
        }
    }
}
