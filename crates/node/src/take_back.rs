//! How a daemon ends, and how what it has changed on this host is taken back.

use std::path::Path;

use anyhow::{Context, Result};
use baton_config::Config;
use baton_dataplane::Pins;
use baton_net::{Host, Netlink, Undo};
use tracing::{error, info};

use crate::{local_node, operator::control, saps::programs};

/// How the daemon ended.
pub enum End {
    /// The host is as it was, except for the steps that failed. Each error was logged.
    TakenDown {
        /// The number of steps that could not be taken back.
        errors: usize,
    },
    /// What is in place stays for the next daemon: programs, addresses and settings, or only maps if an interface was
    /// gone.
    LeftInPlace,
    /// An interface of the node went away and is back: the program is to begin anew ([`crate::begin_anew`]).
    Again,
}

pub fn log_end(errors: usize) {
    match errors {
        0 => info!(errors, "ended; this machine is as it was"),
        _ => error!(
            errors,
            "ended, but not everything could be taken back: run `baton teardown`"
        ),
    }
}

/// Takes back what a daemon of this configuration left, and returns an error for each step that failed.
///
/// # Errors
/// The daemon still runs, or what it left cannot be read.
pub async fn teardown(file: &Path) -> Result<Vec<anyhow::Error>> {
    let config = Config::read(file)?.config;
    let run_dir = &config.local.run_dir;
    // The programs of a daemon that runs would stay attached, without their addresses and pins.
    let _lock = match run_dir.try_exists() {
        Ok(false) => None,
        _ => Some(local_node::lock(run_dir).await?),
    };
    let journal = local_node::journal(&config);
    let mut host = Host::new(
        Netlink::open()?,
        Undo::load(&journal).context("cannot read the journal of changes")?,
    );
    Ok(take_back(
        &mut host,
        &Pins::new(&config.local.bpf_dir),
        &control::socket_path(&config),
    )
    .await)
}

/// Undoes the changes to the host, then removes pins, control group and control socket. Addresses go before programs,
/// because a data server without its program would answer with RSTs. Returns an error for each step that failed.
pub async fn take_back(host: &mut Host, pins: &Pins, socket: &Path) -> Vec<anyhow::Error> {
    let mut errors: Vec<anyhow::Error> = host.unwind().await.into_iter().map(Into::into).collect();
    errors.extend(pins.remove().into_iter().map(Into::into));
    errors.extend(programs::remove_group(pins).err());
    if let Err(error) = std::fs::remove_file(socket)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        errors
            .push(anyhow::Error::new(error).context(format!("cannot remove {}", socket.display())));
    }
    errors
}
