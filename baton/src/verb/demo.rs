//! `baton demo`: the whole idea, shown on this machine.

use std::{process::ExitCode, time::Duration};

use anyhow::Result;
use clap::Args;

/// Show the whole idea.
#[derive(Args)]
pub struct Demo {
    /// Seconds that each program may take to become ready, and that curl may take for a request
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
}

impl Demo {
    /// Raises a small cluster, sends real requests, tells on a page what happened, and takes it down.
    pub fn run(self) -> Result<ExitCode> {
        crate::demo::run(Duration::from_secs(self.timeout))
    }
}
