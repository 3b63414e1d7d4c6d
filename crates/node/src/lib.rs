//! The daemon of a node: fills the programs' maps, keeps the host and its neighbors informed, and is
//! never in the way of a packet. Requests that one packet does not decide its agent reads, with sockets of its own.
//!
//! ```text
//!  baton.toml --> tables --> maps --> the programs          checks --> the local server
//!                   ^                                          |
//!   heartbeat --> membership <-- HELLO of other nodes          v
//!                                                          HELLO to other nodes
//!
//!  agent --what it has read--> the programs                 desk <-- QUERY of other nodes
//! ```
//!
//! Each role has a room: `connection_server`, `data_server`, `dispatcher`, and for I/O servers and application nodes, which have
//! none of the above, `saps`. `daemon` is the loop that all share, `peers` what it knows of other nodes, `tables` what it writes
//! for the programs, `operator` what an operator asks of it.

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
    local_node::Place,
    network::interface_watch::begin_anew,
    operator::{control, drain},
    tables::check_routes,
};
use self::{
    daemon::Daemon,
    service_manager::{News, tell},
};

/// How the daemon ended.
pub enum End {
    /// The host is as it was, but for as many errors, each logged.
    TakenDown {
        /// Steps that could not be taken back.
        errors: usize,
    },
    /// Programs, addresses and settings stay for the next daemon.
    LeftInPlace,
    /// Its interface went away and is back: the program is to begin anew ([`begin_anew`]).
    Again,
}

/// Runs the node of this machine until it is told to end. On an error at the start, everything that
/// was set up is taken back, unless it was an earlier daemon's. `fresh`: what that knows of connections is
/// not taken over.
pub async fn run(place: Place, fresh: bool) -> Result<End> {
    if place.me.roles.is_io() || place.me.roles.is_app() {
        return saps::run(place, fresh).await;
    }
    let mut watch = crate::network::interface_watch::Watch::begin()?;
    let mut daemon = Daemon::start(place, fresh).await?;
    info!("ready");
    let ending = match daemon.serve(&mut watch).await? {
        daemon::Ending::WithoutInterface => daemon.outlast_interface(&mut watch).await?,
        ending => ending,
    };
    match ending {
        daemon::Ending::LeaveInPlace => {
            info!("ended; the packet path stays");
            return Ok(End::LeftInPlace);
        }
        daemon::Ending::Again => return Ok(End::Again),
        daemon::Ending::TakeDown | daemon::Ending::WithoutInterface => {}
    }
    tell(&[
        News::Stopping,
        News::Status("takes this machine back to what it was".into()),
    ]);
    // With its maps goes what was counted.
    daemon.tell_tallies();
    daemon.hand_over().await;
    let errors = daemon.take_down().await;
    for error in &errors {
        error!("{error:#}");
    }
    info!(errors = errors.len(), "ended; this machine is as it was");
    Ok(End::TakenDown {
        errors: errors.len(),
    })
}

/// Takes back what a daemon of this configuration left, and returns all that could not be.
pub async fn teardown(file: &Path) -> Result<Vec<anyhow::Error>> {
    let config = Config::read(file)?.config;
    let journal = local_node::journal(&config);
    let mut host = Host::new(
        Netlink::open()?,
        Undo::load(&journal).context("cannot read the journal of changes")?,
    );
    Ok(take_back(
        &mut host,
        &Pins::new(&config.local.bpf_dir),
        &crate::operator::control::socket_path(&config),
    )
    .await)
}

/// Addresses before programs: without its program a data server would answer with RSTs.
async fn take_back(host: &mut Host, pins: &Pins, socket: &Path) -> Vec<anyhow::Error> {
    let mut errors: Vec<anyhow::Error> = host.unwind().await.into_iter().map(Into::into).collect();
    errors.extend(pins.remove().into_iter().map(Into::into));
    errors.extend(crate::saps::programs::remove_group(pins).err());
    if let Err(error) = std::fs::remove_file(socket)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        errors
            .push(anyhow::Error::new(error).context(format!("cannot remove {}", socket.display())));
    }
    errors
}
