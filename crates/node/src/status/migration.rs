//! The status of migration: entries that went from this node to other connection servers, and entries that came to it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What has migrated since the daemon started.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Migration {
    /// The migration that is under way, in words for people.
    pub now: Option<String>,
    /// Migrations that began at this node.
    pub begun: u64,
    /// Migrations that began at this node and failed.
    pub failed: u64,
    /// Passes over the TCP table.
    pub passes: u64,
    /// Entries that other connection servers took.
    pub entries_sent: u64,
    /// Entries that other connection servers refused.
    pub entries_refused: u64,
    /// Batches that were sent again.
    pub batches_resent: u64,
    /// Entries of other connection servers that this node took.
    pub entries_taken: u64,
    /// Entries of other connection servers that this node left out.
    pub entries_left_out: u64,
    /// How long the last migration from this node took, milliseconds.
    pub last_ms: Option<f64>,
}

impl Migration {
    /// Whether the status should have a line about migration.
    pub fn is_worth_a_line(&self) -> bool {
        self.now.is_some() || self.begun + self.entries_taken + self.entries_left_out > 0
    }
}

impl fmt::Display for Migration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "migration: {} begun, {} failed; entries: {} sent in {} passes, {} refused; {} taken, {} left out",
            self.begun,
            self.failed,
            self.entries_sent,
            self.passes,
            self.entries_refused,
            self.entries_taken,
            self.entries_left_out
        )?;
        if let Some(ms) = self.last_ms {
            write!(f, "; the last took {ms:.1} ms")?;
        }
        if let Some(now) = &self.now {
            write!(f, "; {now}")?;
        }
        Ok(())
    }
}
