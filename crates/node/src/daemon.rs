//! The daemon: one task that owns all state of the node and reacts to events.

pub mod clock;
pub mod events;
pub mod file_watch;
pub mod reload;
pub mod set_up;
pub mod signals;
pub mod succession;

use std::{collections::HashMap, net::Ipv4Addr, time::Duration};

use anyhow::{Context, Result};
use baton_abi::LCCP_HEAD;
use baton_core::{
    Moment,
    liveness::{self, Liveness},
    membership::Membership,
};
use baton_dataplane::{Dataplane, Pins};
use baton_net::{Connections, Host, LccpSocket, Undo};
use baton_streams::{StreamMessage, Streams};
use baton_wire::Incarnation;
use tokio::{
    sync::{mpsc, watch},
    time::{MissedTickBehavior, interval},
};
use tracing::{debug, info, warn};

use super::{
    resume::{self, Resume},
    tables::Tables,
    take_back,
};
use crate::{
    connection_server::{
        ConnectionServer,
        failover::{self, leftovers::Leftovers},
        migration::{self, Migrations},
    },
    daemon::{
        clock::DaemonClock,
        file_watch::Watch,
        signals::{SignalEvent, Signals},
    },
    data_server::{
        DataServer,
        deconfigured::Deconfigured,
        door_tallies::DoorTallies,
        health_checks::{CheckResult, Checks},
        slow_path::SlowPath,
    },
    dispatcher::server::Dispatcher,
    large_files::{LargeFiles, WalkResult},
    local_node::{self, LocalNode, cluster_of},
    logging::logged,
    network::{interface_watch, next_hops},
    operator::{
        control::{self, Call, Request, Response},
        drain::{Drain, DrainRequest},
        report,
    },
    peers::{
        Peers,
        heartbeat::{Heartbeat, clock_now},
        keys,
        messenger::Messenger,
        retransmission::{self, Retransmission},
    },
};

/// The time between two counts of this data server's connections.
const COUNT: Duration = Duration::from_secs(1);

/// The time between two looks for idle connections of data servers that drain.
const RELEASE: Duration = Duration::from_secs(1);

/// The time between two sweeps of the map `tcbs`.
const SWEEP: Duration = Duration::from_secs(5);

/// The most messages that are read in a row while everything else waits. The socket's buffer holds no more.
const MESSAGES_AT_ONCE: u32 = 2048;

/// Why the daemon stopped serving, which decides what is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The daemon was told to end and to restore the host to what it was.
    TakeDown,
    /// The daemon was told to end and to leave the packet path in place for the next daemon.
    LeaveInPlace,
    /// An interface of the node is gone.
    WithoutInterface,
    /// All interfaces are back: the program is to begin anew.
    Again,
}

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
    pub(super) slow_path: SlowPath,
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
        let (streams, heard) = Streams::open(
            local.address,
            local.config.cluster.stream_port.get(),
            keys.clone(),
        )?;
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
        let data_server = (roles.is_ds())
            .then(|| DataServer::new(Checks::new(verdict_sender, local.interface_names())));
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
            slow_path: SlowPath::default(),
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
                heard,
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

    /// Reacts to events until a signal ends the daemon or an interface is gone. Errors of single events are logged: a
    /// running node keeps running.
    pub async fn serve(&mut self, interface: &mut interface_watch::Watch) -> Ending {
        let mut beat = ticker(self.local.config.cluster.hello);
        let mut sweep = ticker(SWEEP);
        let mut release = ticker(RELEASE);
        let mut liveness = ticker(liveness::TICK);
        let mut count = ticker(COUNT);
        let mut look = ticker(file_watch::INTERVAL);
        let mut file = Watch::begin(&self.local.file);
        let mut buffer = vec![0; LccpSocket::MAX_PACKET];
        // Setting the node up may have taken longer than the time after which nodes count as silent.
        self.peers.membership.begin(self.now());
        loop {
            tokio::select! {
                told = self.signals.next() => match told {
                    SignalEvent::End(ending) => return ending,
                    SignalEvent::Reload => self.reload_unasked().await,
                },
                () = interface.news() => {
                    if !self.local.has_its_interfaces().await {
                        return Ending::WithoutInterface;
                    }
                }
                Some((request, reply)) = self.incoming.calls.recv() => {
                    let response = self.answer(&request).await;
                    if let (Request::Reload, Response::Done { .. }) = (request, &response) {
                        beat = ticker(self.local.config.cluster.hello);
                    }
                    // The client of the control socket may have gone.
                    let _ = reply.send(response);
                }
                Some(verdict) = self.incoming.verdicts.recv() => {
                    if let Some(server) = &mut self.data_server {
                        server.checks.note(&verdict);
                    }
                    self.beat().await;
                }
                action = failover::decision(&mut self.connection_server) => self.follow_failover(action).await,
                transfer = Self::next_transfer(&mut self.migrations) => self.begin_transfer(transfer),
                Some(looked) = self.incoming.looked.recv() => self.note_sizes(looked),
                Some(heard) = self.incoming.heard.recv() => self.hear(&heard),
                Some(found) = self.incoming.hops.recv() => logged(self.handle_hop(found)),
                received = self.messenger.socket.recv_from(&mut buffer) => match received {
                    Ok(received) => self.hear_message(&received),
                    Err(error) => debug!("{error}"),
                },
                _ = beat.tick() => self.beat().await,
                _ = release.tick() => {
                    self.release_idle();
                    self.move_busy();
                }
                _ = count.tick(), if self.data_server.is_some() => {
                    self.tell_tallies();
                    self.count_connections().await;
                }
                _ = sweep.tick() => logged(self.sweep()),
                _ = liveness.tick(), if self.local.me.roles.needs_liveness() => {
                    if self.hear_what_waits(&mut buffer) {
                        self.check_liveness();
                    }
                }
                _ = look.tick(), if self.local.config.local.watch => {
                    if file.changed(&self.local.file) {
                        self.reload_unasked().await;
                    }
                }
            }
            self.follow_transfer();
            logged(self.handle_events());
            self.messenger.send_queued().await;
        }
    }

    /// Reads the messages that wait at the socket, because a node whose message has come is not silent. Returns false
    /// if there are so many that some still wait.
    fn hear_what_waits(&mut self, buffer: &mut [u8]) -> bool {
        for _ in 0..MESSAGES_AT_ONCE {
            match self.messenger.socket.try_recv_from(buffer) {
                Ok(Some(received)) => self.hear_message(&received),
                Ok(None) => return true,
                Err(error) => debug!("{error}"),
            }
        }
        false
    }

    /// Restores the host to what it was. An error does not stop this: all errors are returned.
    pub async fn take_down(&mut self) -> Vec<anyhow::Error> {
        let pins = Pins::new(&self.local.config.local.bpf_dir);
        let socket = control::socket_path(&self.local.config);
        self.dataplane.release();
        take_back(&mut self.host, &pins, &socket).await
    }

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

    /// Reloads the configuration for a signal or a changed file. Nobody waits for the result, so it is logged.
    async fn reload_unasked(&mut self) {
        match self.reload().await {
            Ok(message) => info!("{message}"),
            Err(error) => warn!("not reloaded: {error:#}"),
        }
    }

    async fn answer(&mut self, request: &Request) -> Response {
        // The answer may depend on which nodes' messages the programs have refused.
        logged(self.hear_of_refused());
        match request {
            Request::Status => match report::status(self) {
                Ok(status) => Response::Status(Box::new(status)),
                Err(error) => error.into(),
            },
            Request::Migrate { from, to } => self.answer_migrate(from, to),
            Request::Migration { from, to } => self.answer_migration(from, to),
            Request::Drain(wish) => self.answer_drain(wish).await,
            Request::Reload => match self.reload().await {
                Ok(message) => Response::Done { message },
                Err(error) => error.into(),
            },
        }
    }

    /// Begins or ends draining and sends a heartbeat at once, because it takes effect with the next heartbeat.
    async fn answer_drain(&mut self, wish: &DrainRequest) -> Response {
        match self.drain(wish) {
            Ok(message) => {
                self.beat().await;
                // The caller may rely on it as soon as it has the answer.
                logged(self.handle_events());
                Response::Done { message }
            }
            Err(error) => error.into(),
        }
    }

    async fn count_connections(&mut self) {
        self.find_containers().await;
        // This needs a thread of its own: counting a million connections takes a while.
        match tokio::task::spawn_blocking(Connections::count).await {
            Ok(Ok(connections)) => {
                if let Some(server) = &mut self.data_server {
                    server.connections = connections;
                }
                logged(self.leave().await);
                // A data server that has been silent for long no longer counts as missing in the rings.
                logged(self.write_rings());
            }
            Ok(Err(error)) => warn!("{error}"),
            Err(error) => warn!("cannot count connections: {error}"),
        }
    }

    fn sweep(&mut self) -> Result<()> {
        let here = self.connection_server.as_mut();
        if let Some((here, maps)) = here.zip(self.dataplane.as_connection_server()) {
            let cs = &self.local.config.cs;
            here.swept = maps.sweep(cs.idle, cs.closing)?;
            here.expired += u64::from(here.swept.expired);
        }
        Ok(())
    }
}

fn ticker(period: Duration) -> tokio::time::Interval {
    let mut ticker = interval(period);
    ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticker
}
