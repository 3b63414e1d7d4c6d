//! The daemon: one task that owns all state of the node and reacts to events.

pub mod events;
pub mod file_watch;
pub mod reload;
pub mod set_up;
pub mod signals;
pub mod succession;

use std::{
    collections::{BTreeMap, HashMap},
    net::Ipv4Addr,
    sync::Mutex,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use baton_abi::LCCP_HEAD;
use baton_core::{
    Moment,
    listening::ListeningClock,
    membership::Membership,
    pulse::{self, Pulse},
};
use baton_dataplane::{Dataplane, Pins, RefusedNodes};
use baton_net::{Connections, Host, LccpSocket, Undo};
use baton_streams::{Heard, Streams};
use baton_wire::{Incarnation, KeyRing, Message};
use tokio::{
    sync::{mpsc, watch},
    time::{MissedTickBehavior, interval},
};
use tracing::{debug, info, warn};

use super::{
    locked::locked,
    resume::{self, Resume},
    tables::Tables,
    take_back,
};
use crate::{
    connection_server::{
        ConnectionServer, failover,
        migration::{self, Migrations},
    },
    daemon::{
        file_watch::Watch,
        signals::{Signals, Told},
        succession::Succession,
    },
    data_server::{
        DataServer,
        deconfigured::Leaving,
        door_tallies::DoorTallies,
        health_checks::{Checks, Verdict},
        slow_path::Judge,
    },
    dispatcher::server::Desk,
    large_files::{Looked, Sizes},
    local_node::{self, Place, cluster_of},
    logging::logged,
    network::{interface_watch, next_hops},
    operator::{
        control::{self, Call, Request, Response},
        drain::{Drain, Wish},
        report,
    },
    peers::{
        clocks::Clocks,
        heartbeat::{CpuMeter, clock_now},
        keys,
        liveness::Dying,
        retransmission,
        versions::Versions,
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
    pub(super) place: Place,
    pub(super) dataplane: Dataplane,
    pub(super) refused: RefusedNodes,
    pub(super) tables: Tables,
    pub(super) membership: Membership,
    pub(super) pulse: Pulse,
    pub(super) dying: Vec<Dying>,
    pub(super) resume: Resume,
    pub(super) clocks: Clocks,
    pub(super) versions: Versions,
    pub(super) sizes: Sizes,
    pub(super) door_tallies: DoorTallies,
    pub(super) streams: Streams,
    pub(super) connection_server: Option<ConnectionServer>,
    pub(super) data_server: Option<DataServer>,
    pub(super) epoch: Instant,
    clock: Mutex<ListeningClock>,
    pub(super) host: Host,
    pub(super) socket: LccpSocket,
    pub(super) judge: Judge,
    pub(super) desk: Desk,
    pub(super) drain: Drain,
    /// The messages that are to be sent, each with the address of the node that gets it.
    pub(super) outbox: Vec<(Ipv4Addr, Message)>,
    pub(super) keys: KeyRing,
    pub(super) incarnation: Incarnation,
    pub(super) cpu: CpuMeter,
    pub(super) leaving: Leaving,
    /// The failover task. It runs if baton moves the cluster addresses between candidates and this node is one of them.
    pub(super) failover: Option<failover::Running>,
    pub(super) inbox: Inbox,
    pub(super) lost: Lost,
    pub(super) migrations: Migrations,
    pub(super) wanted_hops: watch::Sender<Vec<Ipv4Addr>>,
    pub(super) signals: Signals,
    /// The number of messages to this daemon that were dropped, by counter.
    pub(super) rejected: BTreeMap<u32, u64>,
    /// The lock on `run_dir`, held for as long as this daemon lives.
    _lock: local_node::Lock,
}

/// The daemon's handle to the retransmission task: tells it what to look after, and reads its counters.
pub(super) struct Lost {
    wanted: watch::Sender<retransmission::Wanted>,
    pub(super) counts: std::sync::Arc<retransmission::Counts>,
}

/// The channels by which other tasks report to the daemon.
pub(super) struct Inbox {
    verdicts: mpsc::Receiver<Verdict>,
    looked: mpsc::Receiver<Looked>,
    heard: mpsc::Receiver<Heard>,
    hops: mpsc::Receiver<next_hops::Found>,
    pub(super) calls: mpsc::Receiver<Call>,
    pub(super) calls_sender: mpsc::Sender<Call>,
}

impl Daemon {
    /// Sets the node up: maps before programs, and programs before addresses, so that no packet meets a node
    /// that is half set up. With `fresh` the maps of an earlier daemon are not taken over. A start that fails undoes
    /// what it has done, and leaves what an earlier daemon set up as it is.
    pub async fn start(place: Place, fresh: bool) -> Result<Self> {
        let run_dir = &place.config.local.run_dir;
        std::fs::create_dir_all(run_dir)
            .with_context(|| format!("cannot make {}", run_dir.display()))?;
        let lock = local_node::lock(run_dir).await?;
        let pins = Pins::new(&place.config.local.bpf_dir);
        let successor = pins.holds_links();
        let begun = Self::begin(place, fresh, lock, successor).await;
        if begun.is_err() && !successor {
            for error in pins.remove() {
                warn!("{error}");
            }
        }
        begun
    }

    async fn begin(
        place: Place,
        fresh: bool,
        lock: local_node::Lock,
        successor: bool,
    ) -> Result<Self> {
        let signals = Signals::begin()?;
        let incarnation = Incarnation::started_at(clock_now());
        let drain = Drain::resumed(&place.config);
        // This says HELLO until the daemon itself does.
        let _succession = successor
            .then(|| Succession::begin(&place, incarnation, drain.is_on()))
            .transpose()?;
        let journal = local_node::journal(&place.config);
        let undo =
            Undo::load(&journal).context("cannot read the journal of changes to this host")?;
        let socket = LccpSocket::open(place.address, place.config.cluster.protocol.number())?;
        // These commands are many, and other tasks read them from sockets of their own.
        socket.hear_not(&[&migration::COMMANDS[..], &[LCCP_HEAD as u8]].concat())?;
        let options = place.options();
        if let Some(pins) = options.pins.as_ref().filter(|_| fresh) {
            pins.forget_maps()?;
        }
        let dataplane = Dataplane::load(&options)?;

        let epoch = Instant::now();
        let now = Moment::default();
        let quarantine = place.config.cs.idle;
        let tables = Tables::over(&dataplane, now, quarantine)?;
        let (verdict_sender, verdicts) = mpsc::channel(64);
        let (looked_sender, looked) = mpsc::channel(64);
        let (hop_sender, hops) = mpsc::channel(256);
        let (calls_sender, calls) = mpsc::channel(16);
        let (wanted_hops, wanted) = watch::channel(Vec::new());
        next_hops::follow(place.netlink.clone(), wanted, hop_sender);
        let keys = keys::key_ring_over(&dataplane, &place)?;
        let (wanted, channels) = watch::channel(retransmission::Wanted {
            keys: keys.clone(),
            clock_window: place.config.cluster.clock_window,
            oldest: place.config.cs.dead_after / 2,
            channels: tables.channels(),
        });
        let (streams, heard) = Streams::open(
            place.address,
            place.config.cluster.stream_port.get(),
            keys.clone(),
        )?;
        let protocol = place.config.cluster.protocol.number();
        let maps = dataplane.channels()?;
        let counts = retransmission::start(place.address, protocol, &place.links, maps, channels)?;

        let migrations = Migrations::start(&dataplane, &place)?;
        let roles = place.me.roles;
        let connection_server = roles.is_cs().then(ConnectionServer::begin).transpose()?;
        let data_server = (roles.is_ds())
            .then(|| DataServer::new(Checks::new(verdict_sender, place.interface_names())));
        let orphans = (dataplane.as_connection_server())
            .map(baton_dataplane::ConnectionServer::orphans)
            .transpose()?;
        let nothing_yet = resume::Wanted {
            keys: keys.clone(),
            clock_window: place.config.cluster.clock_window,
            slots: HashMap::new(),
            fronts: Vec::new(),
        };
        let resume = Resume::start(place.address, protocol, nothing_yet, orphans)?;
        let (hello, dead_after) = (place.config.cluster.hello, place.config.cs.dead_after);

        let mut daemon = Self {
            pulse: Pulse::new(now, hello, dead_after),
            dying: Vec::new(),
            resume,
            refused: dataplane.refused_nodes()?,
            dataplane,
            tables,
            membership: Membership::new(
                now,
                cluster_of(&place.config, &place.me)?,
                place.config.cluster.silence,
            ),
            clocks: Clocks::default(),
            versions: Versions::default(),
            sizes: Sizes::new(looked_sender),
            door_tallies: DoorTallies::default(),
            streams,
            connection_server,
            data_server,
            epoch,
            clock: Mutex::new(ListeningClock::new(now, usual_look(hello))),
            host: Host::new(place.netlink.clone(), undo),
            socket,
            judge: Judge::default(),
            desk: Desk::default(),
            drain,
            outbox: Vec::new(),
            keys,
            incarnation,
            cpu: CpuMeter::default(),
            leaving: Leaving::default(),
            failover: None,
            inbox: Inbox {
                verdicts,
                looked,
                heard,
                hops,
                calls,
                calls_sender,
            },
            lost: Lost { wanted, counts },
            migrations,
            wanted_hops,
            signals,
            rejected: BTreeMap::new(),
            _lock: lock,
            place,
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
    pub async fn serve(&mut self, interface: &mut interface_watch::Watch) -> Result<Ending> {
        let mut beat = ticker(self.place.config.cluster.hello);
        let mut sweep = ticker(SWEEP);
        let mut release = ticker(RELEASE);
        let mut pulse = ticker(pulse::TICK);
        let mut count = ticker(COUNT);
        let mut look = ticker(file_watch::INTERVAL);
        let mut file = Watch::begin(&self.place.file);
        let mut buffer = vec![0; LccpSocket::MAX_PACKET];
        // Setting the node up may have taken longer than the time after which nodes count as silent.
        self.membership.begin(self.now());
        loop {
            tokio::select! {
                told = self.signals.next() => match told {
                    Told::End(ending) => return Ok(ending),
                    Told::Reload => self.reload_unasked().await,
                },
                () = interface.news() => {
                    if !self.place.has_its_interfaces().await {
                        return Ok(Ending::WithoutInterface);
                    }
                }
                Some((request, reply)) = self.inbox.calls.recv() => {
                    let response = self.answer(&request).await;
                    if let (Request::Reload, Response::Done { .. }) = (request, &response) {
                        beat = ticker(self.place.config.cluster.hello);
                    }
                    // The client of the control socket may have gone.
                    let _ = reply.send(response);
                }
                Some(verdict) = self.inbox.verdicts.recv() => {
                    if let Some(server) = &mut self.data_server {
                        server.checks.note(&verdict);
                    }
                    self.beat().await;
                }
                action = failover::decision(&mut self.failover) => self.follow_failover(action).await,
                transfer = Self::next_transfer(&mut self.migrations) => self.begin_transfer(transfer),
                Some(looked) = self.inbox.looked.recv() => self.note_sizes(looked),
                Some(heard) = self.inbox.heard.recv() => self.hear(&heard),
                Some(found) = self.inbox.hops.recv() => logged(self.handle_hop(found)),
                received = self.socket.recv_from(&mut buffer) => match received {
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
                _ = pulse.tick(), if self.place.me.roles.needs_pulse() => {
                    if self.hear_what_waits(&mut buffer) {
                        self.feel_pulse();
                    }
                }
                _ = look.tick(), if self.place.config.local.watch => {
                    if file.changed(&self.place.file) {
                        self.reload_unasked().await;
                    }
                }
            }
            self.follow_transfer();
            logged(self.handle_events());
            for (to, message) in std::mem::take(&mut self.outbox) {
                let message = self.sealed(&message, to);
                if let Err(error) = self.socket.send_to(&message, to).await {
                    debug!("{error}");
                }
            }
        }
    }

    /// Reads the messages that wait at the socket, because a node whose message has come is not silent. Returns false
    /// if there are so many that some still wait.
    fn hear_what_waits(&mut self, buffer: &mut [u8]) -> bool {
        for _ in 0..MESSAGES_AT_ONCE {
            match self.socket.try_recv_from(buffer) {
                Ok(Some(received)) => self.hear_message(&received),
                Ok(None) => return true,
                Err(error) => debug!("{error}"),
            }
        }
        false
    }

    /// Restores the host to what it was. An error does not stop this: all errors are returned.
    pub async fn take_down(&mut self) -> Vec<anyhow::Error> {
        let pins = Pins::new(&self.place.config.local.bpf_dir);
        let socket = control::socket_path(&self.place.config);
        self.dataplane.release();
        take_back(&mut self.host, &pins, &socket).await
    }

    /// Tells the retransmission task which channels to look after, and with which keys.
    pub(super) fn look_after_channels(&self) {
        self.lost.wanted.send_replace(retransmission::Wanted {
            keys: self.keys.clone(),
            clock_window: self.place.config.cluster.clock_window,
            oldest: self.place.config.cs.dead_after / 2,
            channels: self.tables.channels(),
        });
    }

    /// The daemon's time, by which it measures everything, above all the silence of other nodes. It stands still while
    /// the daemon is not scheduled.
    pub(super) fn now(&self) -> Moment {
        let now = Moment::after_epoch(self.epoch.elapsed());
        locked(&self.clock).look(now)
    }

    /// Adapts the daemon's clock to a new interval between two HELLOs.
    pub(super) fn retime_clock(&self, hello: Duration) {
        locked(&self.clock).retime(usual_look(hello));
    }

    /// Seconds since the daemon's start.
    pub(super) fn uptime(&self) -> u64 {
        self.epoch.elapsed().as_secs()
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
                Err(error) => Response::Failed {
                    message: format!("{error:#}"),
                },
            },
            Request::Migrate { from, to } => self.answer_migrate(from, to),
            Request::Migration { from, to } => self.answer_migration(from, to),
            Request::Drain(wish) => self.answer_drain(wish).await,
            Request::Reload => match self.reload().await {
                Ok(message) => Response::Done { message },
                Err(error) => Response::Failed {
                    message: format!("{error:#}"),
                },
            },
        }
    }

    /// Begins or ends draining and sends a heartbeat at once, because it takes effect with the next heartbeat.
    async fn answer_drain(&mut self, wish: &Wish) -> Response {
        match self.drain(wish) {
            Ok(message) => {
                self.beat().await;
                // The caller may rely on it as soon as it has the answer.
                logged(self.handle_events());
                Response::Done { message }
            }
            Err(error) => Response::Failed {
                message: format!("{error:#}"),
            },
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
            Err(error) => warn!("counting connections: {error}"),
        }
    }

    fn sweep(&mut self) -> Result<()> {
        let here = self.connection_server.as_mut();
        if let Some((here, maps)) = here.zip(self.dataplane.as_connection_server()) {
            let cs = &self.place.config.cs;
            here.swept = maps.sweep(cs.idle, cs.closing)?;
            here.expired += u64::from(here.swept.expired);
        }
        Ok(())
    }
}

/// The longest time between two looks at the clock of a daemon that is scheduled normally. It looks with each HELLO,
/// and one HELLO may be late.
fn usual_look(hello: Duration) -> Duration {
    2 * hello
}

fn ticker(period: Duration) -> tokio::time::Interval {
    let mut ticker = interval(period);
    ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticker
}
