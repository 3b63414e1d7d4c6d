//! How the daemon starts.

use std::collections::HashMap;

use anyhow::{Context, Result};
use baton_abi::LCCP_HEAD;
use baton_core::{Moment, liveness::Liveness, membership::Membership};
use baton_dataplane::{Dataplane, Pins};
use baton_net::{Host, LccpSocket, Undo};
use baton_streams::Streams;
use baton_wire::Incarnation;
use tokio::sync::{mpsc, watch};
use tracing::warn;

use super::{Daemon, Incoming, clock::DaemonClock, signals::Signals, succession};
use crate::{
    connection_server::{
        ConnectionServer,
        failover::leftovers::Leftovers,
        migration::{self, Migrations},
    },
    data_server::{
        DataServer, current_rules::CurrentRules, deconfigured::Deconfigured,
        door_tallies::DoorTallies, health_checks::Checks, tls_agent::TlsAgent,
    },
    dispatcher::server::Dispatcher,
    large_files::LargeFiles,
    local_node::{self, LocalNode, cluster_of},
    network::next_hops,
    operator::drain::Drain,
    peers::{
        Peers,
        heartbeat::{Heartbeat, clock_now},
        keys,
        messenger::Messenger,
        retransmission::{self, Retransmission},
    },
    resume::{self, Resume},
    runtime_thread::RuntimeThread,
    tables::Tables,
};

impl Daemon {
    /// Sets the node up: maps before programs, and programs before addresses, so that no packet meets a node
    /// that is half set up. With `fresh` the maps of an earlier daemon are not taken over. A start that fails undoes
    /// what it has done, and leaves what an earlier daemon set up as it is.
    pub async fn start(local: LocalNode, fresh: bool) -> Result<Self> {
        let run_dir = &local.config.local.run_dir;
        std::fs::create_dir_all(run_dir)
            .with_context(|| format!("cannot make {}", run_dir.display()))?;
        let lock = local_node::lock(run_dir).await?;
        let pins = Pins::new(&local.config.local.bpf_dir);
        let successor = pins.holds_links();
        let begun = Self::begin(local, fresh, lock, successor).await;
        if begun.is_err() && !successor {
            for error in pins.remove() {
                warn!("{error}");
            }
        }
        begun
    }

    async fn begin(
        local: LocalNode,
        fresh: bool,
        lock: local_node::Lock,
        successor: bool,
    ) -> Result<Self> {
        let signals = Signals::begin()?;
        let incarnation = Incarnation::started_at(clock_now());
        let drain = Drain::resumed(&local.config);
        // This says HELLO until the daemon itself does.
        let _hello_task = successor
            .then(|| succession::say_hello(&local, incarnation, drain.is_on()))
            .transpose()?;
        let journal = local_node::journal(&local.config);
        let undo =
            Undo::load(&journal).context("cannot read the journal of changes to this host")?;
        let socket = LccpSocket::open(local.address, local.config.cluster.protocol.number())?;
        // These commands are many, and other tasks read them from sockets of their own.
        socket.hear_not(&[&migration::COMMANDS[..], &[LCCP_HEAD as u8]].concat())?;
        let options = local.options();
        if let Some(pins) = options.pins.as_ref().filter(|_| fresh) {
            pins.forget_maps()?;
        }
        let dataplane = Dataplane::load(&options)?;

        let (hello, dead_after) = (local.config.cluster.hello, local.config.cs.dead_after);
        let clock = DaemonClock::start(hello);
        let now = Moment::default();
        let quarantine = local.config.cs.idle;
        let tables = Tables::over(&dataplane, now, quarantine)?;
        let (verdict_sender, verdicts) = mpsc::channel(64);
        let (looked_sender, looked) = mpsc::channel(64);
        let (hop_sender, hops) = mpsc::channel(256);
        let (calls_sender, calls) = mpsc::channel(16);
        let (wanted_hops, wanted) = watch::channel(Vec::new());
        next_hops::follow(local.netlink.clone(), wanted, hop_sender);
        let keys = keys::key_ring_over(&dataplane, &local)?;
        let streams_thread = RuntimeThread::start("streams")?;
        let (streams, from_others) = {
            let _within = streams_thread.enter();
            let port = local.config.cluster.stream_port.get();
            Streams::open(local.address, port, keys.clone())?
        };
        let protocol = local.config.cluster.protocol.number();
        let retransmission = Retransmission::start(
            local.address,
            protocol,
            &local.links,
            dataplane.channels()?,
            retransmission::Wanted::new(&local.config, keys.clone(), tables.channels()),
        )?;

        let leftovers = (dataplane.as_connection_server())
            .map(Leftovers::none)
            .transpose()?;
        let migrations = Migrations::start(&dataplane, &local, leftovers.clone())?;
        let roles = local.me.roles;
        let connection_server = leftovers.map(ConnectionServer::begin).transpose()?;
        let current_rules = CurrentRules::default();
        let data_server = if roles.is_ds() {
            let checks = Checks::new(verdict_sender, local.interface_names());
            let from_others = (from_others.questions, from_others.channels);
            // Each move of a connection goes by a stream.
            let _within = streams_thread.enter();
            let tls_agent = TlsAgent::start(&local, tables.choices(), from_others)?;
            Some(DataServer::new(checks, tls_agent))
        } else {
            None
        };
        let orphans = (dataplane.as_connection_server())
            .map(baton_dataplane::ConnectionServer::orphans)
            .transpose()?;
        let nothing_yet = resume::Wanted {
            keys: keys.clone(),
            clock_window: local.config.cluster.clock_window,
            slots: HashMap::new(),
            fronts: Vec::new(),
        };
        let resume = Resume::start(local.address, protocol, nothing_yet, orphans)?;
        let peers = Peers::new(
            Membership::new(
                now,
                cluster_of(&local.config, &local.me)?,
                local.config.cluster.silence,
            ),
            Liveness::new(now, hello, dead_after),
            dataplane.refused_nodes()?,
        );

        let mut daemon = Self {
            clock,
            host: Host::new(local.netlink.clone(), undo),
            dataplane,
            tables,
            peers,
            messenger: Messenger::new(socket, keys, retransmission),
            heartbeat: Heartbeat::new(incarnation),
            streams,
            connection_server,
            data_server,
            dispatcher: Dispatcher::default(),
            current_rules,
            resume,
            sizes: LargeFiles::new(looked_sender),
            door_tallies: DoorTallies::default(),
            deconfigured: Deconfigured::default(),
            drain,
            migrations,
            wanted_hops,
            incoming: Incoming {
                verdicts,
                looked,
                heard: from_others.heard,
                hops,
                calls,
                calls_sender,
            },
            signals,
            _lock: lock,
            local,
        };
        if let Err(error) = daemon.set_up(&options).await {
            // What an earlier daemon set up goes on serving.
            if !successor {
                daemon.take_down().await;
            }
            return Err(error);
        }
        Ok(daemon)
    }
}
