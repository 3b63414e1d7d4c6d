//! `baton node`: the daemon.

use std::process::ExitCode;

use anyhow::{Context, Result};
use baton_dataplane::sys;
use baton_node::{End, LocalNode};
use clap::{Args, ValueEnum};
use tracing::{debug, warn};
use tracing_subscriber::EnvFilter;

use super::ConfigFile;
use crate::doctor;

/// Run this machine's node.
#[derive(Args)]
pub struct Node {
    #[command(flatten)]
    config: ConfigFile,
    /// How the log is written; what is logged: RUST_LOG, default "info"
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    log: LogFormat,
    /// Start without the connections of an earlier daemon whose maps have another layout or size. The packet
    /// path goes on; data servers are asked who has each connection
    #[arg(long)]
    fresh: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

impl Node {
    /// Returns when the node has been told to end: SIGTERM and SIGINT take the host back to what it
    /// was, SIGQUIT leaves the packet path in place for the next daemon.
    pub fn run(self) -> Result<ExitCode> {
        self.start_log();
        // Under a service manager that grants no such thing, its unit says the priority.
        if let Err(error) = sys::run_before_servers() {
            debug!("the daemon runs with the priority that it was started with: {error}");
        }
        // Two threads, and some for one purpose each: packets never wait for the daemon.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .context("cannot start the runtime")?;
        match runtime.block_on(self.serve())? {
            End::TakenDown { errors: 0 } | End::LeftInPlace => Ok(ExitCode::SUCCESS),
            End::Again => Err(baton_node::begin_anew()),
            End::TakenDown { .. } => Ok(ExitCode::FAILURE),
        }
    }

    async fn serve(&self) -> Result<End> {
        let local = LocalNode::find(&self.config.config).await?;
        look_before(&local).await?;
        baton_node::run(local, self.fresh).await
    }

    fn start_log(&self) {
        let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
        let log = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(std::io::stderr)
            .with_ansi(false);
        match self.log {
            LogFormat::Text => log.with_target(false).init(),
            LogFormat::Json => log.json().init(),
        }
    }
}

/// What the doctor calls BAD and keeps the node from working is said before anything is changed.
async fn look_before(local: &LocalNode) -> Result<()> {
    let placed = doctor::Placed {
        file: local.file.clone(),
        config: local.config.clone(),
        me: local.me.clone(),
    };
    let found = doctor::before_start(placed, &local.netlink).await;
    for finding in &found.warnings {
        warn!("{finding}");
    }
    found.must_be_able()
}
