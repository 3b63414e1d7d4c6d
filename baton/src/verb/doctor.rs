//! `baton doctor`: what this kernel and network card can and cannot do, and what to change.

use std::{
    io::{Write as _, stdout},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::{Context, Result};
use clap::Args;

use crate::doctor::{Examination, Finding, List, Verdict, examine};

/// Check this machine.
#[derive(Args)]
pub struct Doctor {
    /// The cluster's configuration file: checks this machine as the node that it is there
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The network interface that other nodes are on [default: the node's, or that of the default route]
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// Print JSON, for programs: an array of objects with name, verdict, found and remedy
    #[arg(long)]
    json: bool,
    /// Also show which kernel features are used, and what the verifier says if it refuses a program: for bug reports
    #[arg(long, conflicts_with = "json")]
    verbose: bool,
}

impl Doctor {
    /// Changes nothing on the host. Fails if a finding is bad.
    pub fn run(self) -> Result<ExitCode> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start the runtime")?;
        let Examination { findings, details } =
            runtime.block_on(examine(self.config.as_deref(), self.interface.as_deref()))?;
        if self.json {
            writeln!(stdout(), "{}", serde_json::to_string_pretty(&findings)?)?;
        } else {
            write!(stdout(), "{}", List(&findings))?;
            if self.verbose {
                write!(stdout(), "\n{details}")?;
            }
        }
        let bad = |finding: &Finding| finding.verdict() == Verdict::Bad;
        Ok(if findings.iter().any(bad) {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        })
    }
}
