//! `baton demo`: the whole idea, shown on this machine.

use std::process::ExitCode;

use anyhow::Result;

/// Raises a small cluster, sends real requests, tells on a page what happened, and takes it down.
pub fn run() -> Result<ExitCode> {
    crate::demo::run()
}
