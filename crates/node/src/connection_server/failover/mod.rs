//! Failover: decides which candidate is in front, and moves the cluster addresses accordingly.
//!
//! A separate thread with a high priority sends the signs of life, because tenths of a second count, and the daemon and
//! the machine may be busy. The thread decides, and the daemon acts on its decisions: only the daemon changes the host.

mod heartbeat;
pub mod leftovers;
pub mod running;

use std::{
    net::Ipv4Addr,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use baton_config::{ClusterAddress, Config, FrontAddress};
use baton_core::failover::{Action, Failover, Rules};
use baton_core::{Moment, listening::ListeningClock};
use baton_wire::{Address, CandidateState, Reject};
use tokio::{
    sync::{Notify, mpsc},
    time::{sleep, timeout},
};
use tracing::{info, warn};

use self::{
    heartbeat::{Heartbeat, Shared, Trust, warn_of_unintelligible},
    running::Running,
};
use crate::status;
use crate::{
    connection_server::ConnectionServer, daemon::Daemon, local_node::LocalNode, locked::locked,
    logging::logged, network::announcer, tables::settings,
};

/// How long packets may still come here after the addresses have gone to another node, which tells the LAN three times.
const LINGER: Duration = Duration::from_millis(1200);

/// A starting node waits at most this long to learn who is in front. Until then it hears no HELLO.
const SETTLING: Duration = Duration::from_millis(500);

impl Daemon {
    /// The handle to failover; `None` if this node takes no part in it.
    fn failover(&self) -> Option<&Running> {
        self.connection_server.as_ref()?.failover.as_ref()
    }

    fn failover_mut(&mut self) -> Option<&mut Running> {
        self.connection_server.as_mut()?.failover.as_mut()
    }

    /// Takes part in failover from now on, if this node is a candidate for addresses that baton moves. If an address is
    /// here already, an earlier daemon has left it, and this node goes on being in front.
    pub(crate) async fn start_failover(&mut self) -> Result<()> {
        let local = &self.local;
        let failover = local.config.failover_of(&local.me.name);
        let Some(failover) = failover.filter(|found| found.address == FrontAddress::Managed) else {
            self.tell_where_this_is();
            return Ok(());
        };
        let mut holds = false;
        for address in local.fronted() {
            let (netlink, interface) = (&local.netlink, &local.link.name);
            holds |= netlink.has_address(interface, address.ip()).await?;
        }
        let epoch = Instant::now();
        let (now, own) = (
            Moment::after_epoch(Duration::ZERO),
            Address::from(local.address),
        );
        let rules = Rules {
            candidates: candidates(&local.config),
            detection: failover.detection,
            preempt: failover.preempt,
        };
        let last = last_epoch(&epoch_file(local));
        let machine = match holds {
            true => Failover::front(now, own, rules, last.max(1)),
            false => Failover::standby(now, own, rules, last),
        };
        let shared = Arc::new(Shared {
            machine: Mutex::new(machine),
            told: Notify::new(),
            trust: Mutex::new(self.trust()),
            clock: Mutex::new(ListeningClock::new(now, usual_look(failover.detection))),
            epoch,
            ended: AtomicBool::new(false),
        });
        let (sender, decided) = mpsc::unbounded_channel();
        let others = candidates(&local.config).into_iter();
        let heartbeat = Heartbeat {
            shared: Arc::clone(&shared),
            own: local.address,
            protocol: local.config.cluster.protocol.number(),
            others: (others.filter(|one| *one != own).filter_map(Address::ipv4)).collect(),
            refused: self.dataplane.refused_nodes()?,
            decided: sender,
        };
        heartbeat.start()?;
        if let Some(server) = &mut self.connection_server {
            if !holds {
                server.leftovers.leave();
            }
            server.failover = Some(Running {
                shared,
                decided,
                holds,
                announcing: None,
            });
        }
        self.tell_where_this_is();
        Ok(())
    }

    /// Waits until a candidate is known to be in front, but at most `SETTLING`. Acts on decisions meanwhile.
    pub(crate) async fn await_front(&mut self) {
        let begun = Instant::now();
        while let Some(running) = self.failover() {
            let known = running.machine().who(running.shared.now()).is_some();
            if begun.elapsed() >= SETTLING || known && running.decided.is_empty() {
                return;
            }
            let wait = Duration::from_millis(10);
            if let Ok(action) = timeout(
                wait,
                ConnectionServer::failover_decision(&mut self.connection_server),
            )
            .await
            {
                self.follow_failover(action).await;
            }
        }
    }

    /// Acts on a decision of the failover thread.
    pub(crate) async fn follow_failover(&mut self, action: Action) {
        match action {
            Action::Take { epoch } => {
                info!(epoch, "in front: takes the cluster addresses");
                logged(write_epoch(&epoch_file(&self.local), epoch));
                if let Some(server) = &self.connection_server {
                    server.leftovers.forget();
                }
                self.hold(true);
                if let Some(server) = self.dataplane.as_connection_server() {
                    logged(server.end_hold().map_err(Into::into));
                }
                logged(settings::note_front(&self.dataplane));
                logged(self.place_addresses().await.map(drop));
                self.announce_front();
                logged(self.look_after_the_dead());
            }
            Action::Yield { to } => {
                let name = self.local.config.node_at(to.ip());
                let name = name.map_or("?", |node| node.name.as_str());
                info!(
                    to = name,
                    "no longer in front: gives up the cluster addresses"
                );
                let places = self.held_places();
                self.hold(false);
                if let Some(announcing) = self.failover_mut().and_then(|f| f.announcing.take()) {
                    announcing.abort();
                }
                logged(self.give_up(&places).await);
                if let Some(server) = &self.connection_server {
                    server.leftovers.leave();
                }
            }
            Action::Announce => {
                warn!(
                    "another candidate took itself to be in front as well: announces the addresses again"
                );
                self.announce_front();
            }
            // The thread sends these messages itself.
            Action::Say(_) => {}
        }
    }

    /// Lets another candidate take over, if one lives, and waits until clients' packets have followed. Called before
    /// this node is taken down.
    pub(crate) async fn hand_over(&mut self) {
        let failover = self.local.config.failover.as_ref();
        if failover.is_some_and(|found| found.address == FrontAddress::Routed) {
            // The program that announces the addresses from lo withdraws them when they leave lo, and the routers
            // follow.
            for (address, at) in self.held_places() {
                logged(
                    self.host
                        .remove_address(&at, address.ip())
                        .await
                        .map(drop)
                        .map_err(Into::into),
                );
            }
            sleep(LINGER).await;
        }
        let Some(running) = self.failover() else {
            return;
        };
        let now = running.shared.now();
        let detection = (self.local.config.failover.as_ref()).map(|found| found.detection);
        let begun = {
            let mut machine = running.machine();
            let next = machine.next(now);
            next.is_some_and(|next| machine.hand_to(now, next))
        };
        if begun {
            running.shared.told.notify_one();
            let mut decisions = Vec::new();
            let yielded = async {
                loop {
                    let action =
                        ConnectionServer::failover_decision(&mut self.connection_server).await;
                    decisions.push(action);
                    if let Action::Yield { .. } = action {
                        return;
                    }
                }
            };
            let done = timeout(detection.unwrap_or_default() * 2, yielded).await;
            for action in decisions {
                self.follow_failover(action).await;
            }
            match done {
                Ok(()) => {
                    self.stop_failover();
                    sleep(LINGER).await;
                }
                Err(_) => warn!("no other candidate took over in time"),
            }
        }
        self.stop_failover();
    }

    /// Begins to hand over to the candidate at `to`, which takes the addresses at once. Returns `false` if this node is
    /// not in front or does not hear that candidate.
    pub(crate) fn hand_front_to(&mut self, to: Ipv4Addr) -> bool {
        let Some(running) = self.failover() else {
            return false;
        };
        let begun = (running.machine()).hand_to(running.shared.now(), to.into());
        running.shared.told.notify_one();
        begun
    }

    /// Gives the failover thread the times and keys of a reloaded configuration.
    pub(crate) fn retime_failover(&mut self) {
        let trust = self.trust();
        if let (Some(running), Some(failover)) = (self.failover(), &self.local.config.failover) {
            let (detection, preempt) = (failover.detection, failover.preempt);
            let mut machine = running.machine();
            machine.retime(detection, preempt);
            locked(&running.shared.clock).retime(usual_look(detection));
            let mut trusted = locked(&running.shared.trust);
            let others = candidates(&self.local.config).into_iter();
            let mut others = others.filter_map(Address::ipv4);
            if others.any(|one| trusted.keys.with(one) != trust.keys.with(one)) {
                machine.rekey(running.shared.now());
            }
            *trusted = trust;
            drop((machine, trusted));
            running.shared.told.notify_one();
        }
    }

    /// Returns the interfaces that are to have a cluster address which this node needs: the one at which ARP finds the
    /// address, or `lo`, at which the LAN does not learn of it and a data server's sockets can use it, or both.
    pub(crate) fn holders(&self, address: ClusterAddress) -> Vec<String> {
        let local = &self.local;
        let Some(failover) = &local.config.failover else {
            return vec![local.holds_at(address).to_owned()];
        };
        let is_candidate = local.config.fronts(&local.me, address);
        let is_served = local
            .config
            .cluster_addresses_of(&local.me.name)
            .contains(&address)
            || self.deconfigured.addresses().any(|left| left == address);
        let mut holders = Vec::new();
        if is_served || is_candidate && failover.address == FrontAddress::Routed {
            holders.push("lo".to_owned());
        }
        if is_candidate && self.failover().is_some_and(|running| running.holds) {
            holders.push(local.link.name.clone());
        }
        holders
    }

    /// Notes that a message of another node was understood.
    pub(crate) fn note_understood(&self) {
        if let Some(running) = self.failover() {
            running.machine().handle_understood();
        }
    }

    /// Notes that a message of a node of the cluster could not be understood. Warns if that is news.
    pub(crate) fn note_unintelligible(&self, from: Ipv4Addr, reject: Reject) {
        if let Some(running) = self.failover() {
            let is_news = running
                .machine()
                .handle_unintelligible(running.shared.now(), from.into());
            if is_news {
                warn_of_unintelligible(from, reject);
            }
        }
    }

    /// Returns the state of failover as `baton status` shows it; `None` if this node is no candidate.
    pub(crate) fn failover_status(&self) -> Option<status::Failover> {
        let local = &self.local;
        let failover = local.config.failover.as_ref()?;
        let named = |address: Address| {
            let node = local.config.node_at(address.ip());
            node.map(|node| node.name.to_string())
        };
        let candidates = failover
            .candidates
            .iter()
            .map(ToString::to_string)
            .collect();
        let Some(running) = self.failover() else {
            let takes_part = failover.candidates.contains(&local.me.name);
            return takes_part.then(|| status::Failover {
                state: failover.address.to_string(),
                candidates,
                ..status::Failover::default()
            });
        };
        let (now, machine) = (running.shared.now(), running.machine());
        Some(status::Failover {
            state: match machine.said().state {
                CandidateState::Standby => "standby".into(),
                CandidateState::Front => "front".into(),
                CandidateState::Handing { .. } => "handing over".into(),
            },
            candidates,
            front: machine.who(now).and_then(named),
            epoch: machine.said().epoch,
            takeovers: machine.takeovers(),
            unintelligible: machine.unintelligible(now).and_then(named),
        })
    }

    /// Whether this node takes part in failover and is not in front.
    pub(crate) fn is_on_standby(&self) -> bool {
        self.failover().is_some_and(|running| !running.holds)
    }

    fn hold(&mut self, holds: bool) {
        if let Some(running) = self.failover_mut() {
            running.holds = holds;
        }
        self.tell_where_this_is();
    }

    fn announce_front(&mut self) {
        let addresses: Vec<Ipv4Addr> = (self.local.fronted().into_iter())
            .filter_map(ClusterAddress::ipv4)
            .collect();
        let announcing = announcer::announce_all(&self.local.link, &addresses);
        if let Some(running) = self.failover_mut()
            && let Some(before) = running.announcing.replace(announcing)
        {
            before.abort();
        }
    }

    /// Ends the failover thread, so that this node sends no more signs of life.
    pub(crate) fn stop_failover(&mut self) {
        if let Some(running) = self.failover() {
            running.shared.ended.store(true, Ordering::Relaxed);
            running.shared.told.notify_one();
        }
    }

    fn trust(&self) -> Trust {
        Trust {
            keys: self.messenger.keys.clone(),
            clock_window: self.local.config.cluster.clock_window,
        }
    }
}

/// The longest time between two looks of the failover thread at its clock while it runs normally. In fact it
/// looks far more often. If it has not looked for half of `detection`, it did not run.
fn usual_look(detection: Duration) -> Duration {
    detection / 2
}

fn candidates(config: &Config) -> Vec<Address> {
    let names = config.failover.iter().flat_map(|found| &found.candidates);
    let nodes = names.filter_map(|name| config.node_named(name.as_str()));
    nodes.map(|node| node.address.ip().into()).collect()
}

/// The file in which a daemon leaves the epoch of its time in front to the next daemon. A reboot removes it together
/// with the addresses.
fn epoch_file(local: &LocalNode) -> PathBuf {
    local.config.local.run_dir.join("epoch")
}

fn last_epoch(file: &Path) -> u64 {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

fn write_epoch(file: &Path, epoch: u64) -> Result<()> {
    std::fs::write(file, format!("{epoch}\n"))
        .with_context(|| format!("cannot write {}", file.display()))
}
