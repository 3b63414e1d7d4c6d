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
mod logging;
mod metrics;
mod network;
mod operator;
mod owned_task;
mod peers;
mod places;
mod resume;
mod runtime_thread;
pub mod saps;
pub mod service_manager;
pub mod status;
mod tables;
mod take_back;

use anyhow::Result;
use baton_core::locked;
use tracing::{error, info};

pub use self::{
    connection_server::migration,
    local_node::LocalNode,
    network::interface_watch::begin_anew,
    operator::control,
    tables::check_routes,
    take_back::{End, teardown},
};
use self::{
    daemon::{Daemon, signals::Ending},
    network::interface_watch,
    service_manager::{News, tell},
    take_back::log_end,
};

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
        Ending::WithoutInterface => (daemon.outlast_interface(&mut watch).await, false),
        ending => (ending, true),
    };
    match ending {
        Ending::LeaveInPlace => {
            if has_interface {
                info!("ended; the packet path stays");
            } else {
                info!(
                    "ended; the maps stay, programs and addresses were given up with the interface"
                );
            }
            return Ok(End::LeftInPlace);
        }
        Ending::Again => return Ok(End::Again),
        Ending::TakeDown | Ending::WithoutInterface => {}
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
