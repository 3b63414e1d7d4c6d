//! How the daemon serves: it waits for the next event and handles it.

use std::time::Duration;

use anyhow::Result;
use baton_core::liveness;
use baton_dataplane::Pins;
use baton_net::{Connections, LccpSocket};
use tokio::time::{MissedTickBehavior, interval};
use tracing::{debug, info, warn};

use super::{
    Daemon,
    file_watch::{self, Watch},
    signals::{Ending, SignalEvent},
};
use crate::{
    connection_server::ConnectionServer,
    logging::logged,
    network::interface_watch,
    operator::{
        control::{self, DrainRequest, Request, Response},
        report,
    },
    take_back::take_back,
};

/// The time between two counts of this data server's connections.
const COUNT: Duration = Duration::from_secs(1);

/// The time between two looks for idle connections of data servers that drain.
const RELEASE: Duration = Duration::from_secs(1);

/// The time between two sweeps of the map `tcbs`.
const SWEEP: Duration = Duration::from_secs(5);

/// The most messages that are read in a row while everything else waits. The socket's buffer holds no more.
const MESSAGES_AT_ONCE: u32 = 2048;

impl Daemon {
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
                action = ConnectionServer::failover_decision(&mut self.connection_server) => self.follow_failover(action).await,
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
                    self.tell_ticket_keys();
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
        if let Some(server) = &self.data_server {
            server.tls_agent.end().await;
        }
        take_back(&mut self.host, &pins, &socket).await
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
