//! What a client may demand without bringing anything, so that none keeps a machine busy in vain. The numbers are those
//! of BoringSSL, which rustls has as well.

use crate::alert::Alert;
use crate::record::{RecordError, refused};

/// Empty records in a row.
const EMPTY: u8 = 32;
/// Key updates in a row, with no data between them.
const KEY_UPDATES: u8 = 32;
/// Alerts that are only warnings, in all.
const WARNINGS: u8 = 4;

/// Counts what has come and brought nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) empty: u8,
    pub(crate) key_updates: u8,
    pub(crate) warnings: u8,
}

impl Limits {
    /// Notes that data came.
    pub(crate) fn data(&mut self) {
        self.empty = 0;
        self.key_updates = 0;
    }

    /// Notes an empty record.
    ///
    /// # Errors
    /// It was one too many.
    pub(crate) fn empty(&mut self) -> Result<(), RecordError> {
        count(
            &mut self.empty,
            EMPTY,
            "there were too many empty ones in a row",
        )
    }

    /// Notes a key update.
    ///
    /// # Errors
    /// It was one too many.
    pub(crate) fn key_update(&mut self) -> Result<(), RecordError> {
        count(
            &mut self.key_updates,
            KEY_UPDATES,
            "there were too many key updates without data",
        )
    }

    /// Notes a warning.
    ///
    /// # Errors
    /// It was one too many.
    pub(crate) fn warning(&mut self) -> Result<(), RecordError> {
        count(&mut self.warnings, WARNINGS, "there were too many alerts")
    }
}

fn count(counter: &mut u8, most: u8, why: &'static str) -> Result<(), RecordError> {
    if *counter >= most {
        return Err(refused(Alert::UNEXPECTED_MESSAGE, why));
    }
    *counter += 1;
    Ok(())
}
