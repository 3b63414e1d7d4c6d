//! Logging of errors that stop nothing.

pub mod complaints;

use anyhow::Result;
use tracing::warn;

/// Logs an error as a warning: a running node keeps running.
pub fn logged(result: Result<()>) {
    if let Err(error) = result {
        warn!("{error:#}");
    }
}
