//! The state of migrations, as the command line, `baton status` and metrics show it.

use std::collections::BTreeMap;

use baton_core::migration::{Progress, Report, Stage};
use baton_wire::LeftOut;
use serde::{Deserialize, Serialize};

use crate::status;

/// The current or last migration, and the totals of all migrations.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct State {
    /// The name of the node to which the last migration that began here goes or went.
    pub to: Option<String>,
    /// The progress of the migration; `None` if it has ended, or none has begun.
    pub running: Option<Running>,
    /// How the last migration ended; `None` while one runs, or if none has begun.
    pub ended: Option<Ended>,
    /// Whether the cluster addresses have to be moved by other means than baton.
    pub by_hand: bool,
    /// The totals since the daemon started.
    pub totals: Totals,
    /// The number of messages that the task dropped, by counter.
    #[serde(skip)]
    pub rejected: BTreeMap<u32, u64>,
}

/// The progress of a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    /// What the migration does at the moment.
    pub stage: Doing,
    /// The number of the current pass over the table.
    pub pass: usize,
    /// How many entries of this pass have come to the other node.
    pub came: usize,
    /// How many entries this pass has.
    pub entries: usize,
}

/// The stage of a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Doing {
    /// The migration waits for the first answer of the other node.
    Asking,
    /// The entries go over.
    Copying,
    /// The cluster addresses move.
    Moving,
    /// The entries that changed until the addresses moved go over.
    Finishing,
}

/// How a migration ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// The migration succeeded, with this summary.
    Done(Summary),
    /// The migration failed, for this reason.
    Failed(String),
}

/// A migration that ended well.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The number of entries in each pass. The last pass went over after the addresses.
    pub passes: Vec<usize>,
    /// The number of batches.
    pub batches: u32,
    /// How often a batch was sent again.
    pub resent: u64,
    /// How many entries the other node has taken. An entry that went over several times counts each time.
    pub taken: u32,
    /// How many entries the other node left out because its table was full.
    pub full: u32,
    /// How many entries the other node left out because it does not know their data server.
    pub no_owner: u32,
    /// How many entries the other node left out because it does not know their service.
    pub no_service: u32,
    /// How many entries the other node left out because it has newer ones.
    pub older: u32,
    /// The time from the first look at the table until all of its entries had come to the other node, in milliseconds.
    pub copied_ms: f64,
    /// How long requests had to wait, in milliseconds.
    pub held_ms: f64,
    /// How long the whole migration took, in milliseconds.
    pub took_ms: f64,
}

/// The totals of all migrations since the daemon started.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Totals {
    /// Migrations that began here.
    pub begun: u64,
    /// Migrations that began here and failed.
    pub failed: u64,
    /// Passes over the table in migrations that began here and succeeded.
    pub passes: u64,
    /// Entries that other nodes have taken from this one.
    pub sent: u64,
    /// Entries of this node that other nodes have left out.
    pub refused: u64,
    /// Batches that this node has sent again.
    pub resent: u64,
    /// Entries of other nodes that this node has taken.
    pub taken: u64,
    /// Entries of other nodes that this node has left out.
    pub left_out: u64,
    /// How long the last successful migration took, in milliseconds.
    pub last_ms: Option<f64>,
}

impl Running {
    /// Converts the progress of a migration; `None` if the migration has ended.
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
    /// Makes the summary of a report.
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

    /// Returns how many entries the other node left out, for any reason.
    pub fn left_out(&self) -> u32 {
        self.full + self.no_owner + self.no_service + self.older
    }
}

impl State {
    /// Returns the state as `baton status` shows it.
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
