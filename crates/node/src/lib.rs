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
//! I/O servers and application nodes have none of this: see `saps`.

mod announcer;
pub mod app;
mod asking;
mod checks;
mod clocks;
mod complaints;
mod containers;
mod content;
pub mod control;
mod daemon;
mod desk;
mod door_tallies;
pub mod drain;
mod early;
mod egress;
mod events;
mod failover;
mod file_watch;
mod heartbeat;
mod interface;
mod judge;
mod keys;
mod leaving;
mod lives;
mod locked;
mod logged;
mod lost;
mod metrics;
pub mod migrate;
mod moving;
mod next_hops;
mod place;
mod reader;
mod relay;
mod releases;
mod reload;
mod report;
mod resume;
mod saps;
mod segments;
pub mod service_manager;
mod set_up;
mod signals;
mod sizes;
pub mod status;
mod succession;
mod tables;
mod tallies;
mod translation;
mod versions;

use std::path::Path;

use anyhow::{Context, Result};
use baton_config::Config;
use baton_dataplane::Pins;
use baton_net::{Host, Netlink, Undo};
use tracing::{error, info};

use self::{
    daemon::Daemon,
    service_manager::{News, tell},
};
pub use self::{interface::begin_anew, place::Place, tables::check_routes};

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
    let mut watch = interface::Watch::begin()?;
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
    let journal = place::journal(&config);
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

/// Addresses before programs: without its program a data server would answer with RSTs.
async fn take_back(host: &mut Host, pins: &Pins, socket: &Path) -> Vec<anyhow::Error> {
    let mut errors: Vec<anyhow::Error> = host.unwind().await.into_iter().map(Into::into).collect();
    errors.extend(pins.remove().into_iter().map(Into::into));
    errors.extend(app::remove_group(pins).err());
    if let Err(error) = std::fs::remove_file(socket)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        errors
            .push(anyhow::Error::new(error).context(format!("cannot remove {}", socket.display())));
    }
    errors
}
