//! `baton tls-agent`: what the daemon runs to speak TLS in place of servers.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use baton_agent::{Account, terminate::process};
use baton_dataplane::sys;
use clap::Args;
use nix::unistd::{Gid, Uid};
use tracing::warn;
use tracing_subscriber::EnvFilter;

/// The place where the process is found.
#[derive(Args)]
pub struct TlsAgentVerb {
    /// The folder with the daemon's socket
    directory: PathBuf,
    /// The number of the user as whom it runs
    user: u32,
    /// The number of that user's own group
    group: u32,
    /// The numbers of further groups that the user is in
    groups: Vec<u32>,
}

impl TlsAgentVerb {
    /// Runs the process to its end.
    pub fn run(self) -> Result<ExitCode> {
        let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
        tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(std::io::stderr)
            .with_ansi(false)
            .with_target(false)
            .init();
        if let Err(error) = sys::run_beside_servers() {
            warn!("the TLS agent runs with the daemon's priority: {error}");
        }
        let account = Account {
            user: Uid::from_raw(self.user),
            group: Gid::from_raw(self.group),
            groups: self.groups.into_iter().map(Gid::from_raw).collect(),
        };
        process::run(&self.directory, &account)?;
        Ok(ExitCode::SUCCESS)
    }
}
