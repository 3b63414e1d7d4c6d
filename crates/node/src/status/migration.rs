//! What a node says of the entries that went over from it, and that came to it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Since the daemon started.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Migration {
    /// What is on, for people.
    pub now: Option<String>,
    /// Migrations that began here,
    pub begun: u64,
    /// and those of them that failed.
    pub failed: u64,
    /// Passes over the table.
    pub passes: u64,
    /// Entries that others have taken,
    pub entries_sent: u64,
    /// and that they have refused.
    pub entries_refused: u64,
    /// Batches that were sent again.
    pub batches_resent: u64,
    /// Entries that were taken here,
    pub entries_taken: u64,
    /// and that were left out.
    pub entries_left_out: u64,
    /// How long the last one took, milliseconds.
    pub last_ms: Option<f64>,
}

impl Migration {
    /// Whether there is something to tell.
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
