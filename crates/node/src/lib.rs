//! The daemon of a node: it fills the programs' maps, sets up addresses and sysctls of the host, and tells other nodes
//! how it is. No packet that the programs can handle alone passes through it. Its agent reads the requests that one packet
//! does not decide, with sockets of its own.
//!
//! ```text
//!  baton.toml --> tables --> maps --> the programs          checks --> the local server
//!                   ^                                          |
//!   heartbeat --> membership <-- HELLO of other nodes          v
//!                                                          HELLO to other nodes
//!
//!  agent --what it has read--> the programs           dispatcher <-- QUERY of other nodes
//! ```
//!
//! Connection servers, data servers and dispatchers have modules of these names; a switch needs only `tables`. I/O servers
//! and application nodes have a daemon of their own, `saps`, which shares signals, control socket and metrics. `daemon` is
//! the loop that the other roles share, `peers` is what it knows of other nodes, `tables` is what it writes for the
//! programs, and `operator` is what an operator asks of it.

mod connection_server;
mod daemon;
mod data_server;
mod dispatcher;
mod large_files;
mod local_node;
mod locked;
mod logging;
mod metrics;
mod network;
mod operator;
mod owned_task;
mod peers;
mod resume;
pub mod saps;
pub mod service_manager;
pub mod status;
mod tables;

use std::path::Path;

use anyhow::{Context, Result};
use baton_config::Config;
use baton_dataplane::Pins;
use baton_net::{Host, Netlink, Undo};
use tracing::{error, info};

pub use self::{
    connection_server::migration,
    local_node::LocalNode,
    network::interface_watch::begin_anew,
    operator::{control, drain},
    tables::check_routes,
};
use self::{
    daemon::Daemon,
    network::interface_watch,
    saps::programs,
    service_manager::{News, tell},
};

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
    /// An interface of the node went away and is back: the program is to begin anew ([`begin_anew`]).
    Again,
}

/// Runs the node of this machine until it is told to end. On an error at the start, everything that
/// was set up is taken back, unless an earlier daemon set it up. With `fresh`, what an earlier daemon left in the maps,
/// connections above all, is not taken over.
pub async fn run(local: LocalNode, fresh: bool) -> Result<End> {
    if local.me.roles.is_io() || local.me.roles.is_app() {
        return saps::run(local, fresh).await;
    }
    let mut watch = interface_watch::Watch::begin()?;
    let mut daemon = Daemon::start(local, fresh).await?;
    info!("ready");
    let (ending, has_interface) = match daemon.serve(&mut watch).await {
        daemon::Ending::WithoutInterface => (daemon.outlast_interface(&mut watch).await, false),
        ending => (ending, true),
    };
    match ending {
        daemon::Ending::LeaveInPlace => {
            if has_interface {
                info!("ended; the packet path stays");
            } else {
                info!(
                    "ended; the maps stay, programs and addresses were given up with the interface"
                );
            }
            return Ok(End::LeftInPlace);
        }
        daemon::Ending::Again => return Ok(End::Again),
        daemon::Ending::TakeDown | daemon::Ending::WithoutInterface => {}
    }
    tell(&[
        News::Stopping,
        News::Status("restores this machine to what it was".into()),
    ]);
    // The tallies are lost with the maps. They are sent while the rest is taken down; nothing waits until they have
    // arrived.
    daemon.tell_tallies();
    daemon.hand_over().await;
    let errors = daemon.take_down().await;
    for error in &errors {
        error!("{error:#}");
    }
    log_end(errors.len());
    Ok(End::TakenDown {
        errors: errors.len(),
    })
}

fn log_end(errors: usize) {
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
async fn take_back(host: &mut Host, pins: &Pins, socket: &Path) -> Vec<anyhow::Error> {
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
