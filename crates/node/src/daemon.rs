//! The daemon: one task that owns all state of the node and reacts to events.

pub mod clock;
pub mod events;
pub mod file_watch;
pub mod reload;
mod serve;
pub mod set_up;
pub mod signals;
mod start;
pub mod succession;

use std::net::Ipv4Addr;

use baton_core::Moment;
use baton_dataplane::Dataplane;
use baton_net::Host;
use baton_streams::{StreamMessage, Streams};
use tokio::sync::{mpsc, watch};

use super::{resume::Resume, tables::Tables};
use crate::{
    connection_server::{ConnectionServer, migration::Migrations},
    daemon::{clock::DaemonClock, signals::Signals},
    data_server::{
        DataServer, current_rules::CurrentRules, deconfigured::Deconfigured,
        door_tallies::DoorTallies, health_checks::CheckResult,
    },
    dispatcher::server::Dispatcher,
    large_files::{LargeFiles, WalkResult},
    local_node::{self, LocalNode},
    network::next_hops,
    operator::{control::Call, drain::Drain},
    peers::{Peers, heartbeat::Heartbeat, messenger::Messenger, retransmission},
};

/// Everything that the daemon of a node has.
pub struct Daemon {
    pub(super) local: LocalNode,
    pub(super) clock: DaemonClock,
    pub(super) host: Host,
    pub(super) dataplane: Dataplane,
    pub(super) tables: Tables,
    pub(super) peers: Peers,
    pub(super) messenger: Messenger,
    pub(super) heartbeat: Heartbeat,
    pub(super) streams: Streams,
    pub(super) connection_server: Option<ConnectionServer>,
    pub(super) data_server: Option<DataServer>,
    pub(super) dispatcher: Dispatcher,
    pub(super) current_rules: CurrentRules,
    pub(super) resume: Resume,
    pub(super) sizes: LargeFiles,
    pub(super) door_tallies: DoorTallies,
    pub(super) deconfigured: Deconfigured,
    pub(super) drain: Drain,
    pub(super) migrations: Migrations,
    pub(super) wanted_hops: watch::Sender<Vec<Ipv4Addr>>,
    pub(super) incoming: Incoming,
    pub(super) signals: Signals,
    /// The lock on `run_dir`, held for as long as this daemon lives.
    _lock: local_node::Lock,
}

/// The channels by which other tasks report to the daemon.
pub(super) struct Incoming {
    verdicts: mpsc::Receiver<CheckResult>,
    looked: mpsc::Receiver<WalkResult>,
    heard: mpsc::Receiver<StreamMessage>,
    hops: mpsc::Receiver<next_hops::Found>,
    pub(super) calls: mpsc::Receiver<Call>,
    pub(super) calls_sender: mpsc::Sender<Call>,
}

impl Daemon {
    /// Tells the retransmission task which channels to look after, and with which keys.
    pub(super) fn look_after_channels(&self) {
        let (keys, channels) = (self.messenger.keys.clone(), self.tables.channels());
        self.messenger.look_after(retransmission::Wanted::new(
            &self.local.config,
            keys,
            channels,
        ));
    }

    /// The daemon's time, by which it measures everything.
    pub(super) fn now(&self) -> Moment {
        self.clock.now()
    }
}
