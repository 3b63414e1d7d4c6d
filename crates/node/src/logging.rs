//! Errors that stop nothing.

pub mod complaints;

use anyhow::Result;
use tracing::warn;

/// A running node keeps running: what went wrong is said.
pub fn logged(result: Result<()>) {
    if let Err(error) = result {
        warn!("{error:#}");
    }
}
