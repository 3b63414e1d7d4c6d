//! How the daemon handles messages and events, and what it sends.

use std::{net::Ipv4Addr, time::Duration};

use anyhow::Result;
use baton_core::membership::{self, Event};
use baton_net::Received;
use baton_streams::{StreamMessage, Topic};
use baton_wire::{
    Arrival, Clock, Health, HelloService, Message, Reject, Verb, clock_of, version_of,
};
use tracing::{debug, info, warn};

use crate::{
    daemon::Daemon,
    local_node::FRONT,
    logging::logged,
    network::next_hops,
    peers::{
        heartbeat::{self, clock_now},
        sealing,
    },
    places::{Placed, endpoint, services_with_places},
};

impl Daemon {
    pub(crate) fn hear_message(&mut self, received: &Received<'_>) {
        self.handle_message(received.sender, received.payload, received.came());
    }

    fn handle_message(&mut self, sender: Ipv4Addr, payload: &[u8], came: Arrival) {
        let (keys, window) = (&self.messenger.keys, self.local.config.cluster.clock_window);
        let received = match sealing::open(self.local.address, keys, window, sender, payload, came)
        {
            Ok(received) => received,
            Err(reject) => {
                *self.messenger.rejected.entry(reject.counter()).or_default() += 1;
                if let (Reject::Stale, Some(theirs)) = (reject, clock_of(payload)) {
                    self.note_stale(sender, theirs, came.nearest(theirs), Duration::ZERO);
                }
                self.note_rejected(sender, reject, version_of(payload));
                debug!(%sender, "dropped a message: {reject}");
                return;
            }
        };
        match received.message {
            Message::Hello(hello) => {
                let now = self.now();
                let ours = came.nearest(received.clock);
                self.peers
                    .clocks
                    .note_taken(now, sender, received.clock, ours);
                self.peers.versions.note_understood(now, sender);
                self.note_understood();
                self.note_deaf(sender, false);
                // A HELLO of this node itself says nothing about the network.
                if sender != self.local.address {
                    self.peers.liveness.handle_sign(now, sender.into());
                }
                if self
                    .peers
                    .membership
                    .handle_hello(now, sender.into(), received.clock, &hello)
                    == membership::HelloOutcome::FromStranger
                {
                    debug!(%sender, "a HELLO from an address that is no data server's in this configuration");
                }
            }
            // The program passes REFUSED up only when every data server has refused.
            Message::Refused { flow, refusal, .. } => {
                debug!(client = %flow.client(), ?refusal, "all data servers have refused the connection");
                if let Some(server) = &self.connection_server {
                    logged(server.segments.refuse(received.packet));
                }
            }
            Message::Order(order) => match order.verb {
                Verb::Migrate(_) | Verb::Tell => self.handle_migrate_order(sender, order),
                Verb::Drain | Verb::Undrain => self.handle_drain_order(sender, order),
            },
            // Each looks for the order, by its number, among those that it has given.
            Message::Account(account) => {
                self.handle_migration_account(sender, &account);
                self.handle_drain_account(sender, &account);
            }
            // Other tasks read these from their own sockets.
            Message::Sync { .. }
            | Message::Resend(_)
            | Message::Candidate(_)
            | Message::Tcbs(_)
            | Message::Taken(_) => {}
            Message::Alive { turned: true, .. } => {
                self.peers.liveness.handle_sign(self.now(), sender.into())
            }
            Message::Query(query) => {
                let reply = Message::Reply(self.dispatcher.answer(&query));
                self.messenger.queue(sender, reply);
            }
            // The task that asked reads it too.
            Message::Reply(_) => {}
            // The task that resumes responses reads these too.
            Message::Resume(_)
            | Message::Ready(_)
            | Message::Yielded { .. }
            | Message::Heads(_) => {}
            Message::Adopt { .. }
            | Message::AdoptAgain { .. }
            | Message::ForwardKept { .. }
            | Message::Received { .. }
            | Message::Forward { .. }
            | Message::None { .. }
            | Message::Claim { .. }
            | Message::Moved { .. }
            | Message::Yield { .. }
            | Message::Alive { turned: false, .. } => {
                debug!(%sender, "a message for a program that does not run here")
            }
        }
    }

    /// Handles what another node has told by a stream.
    pub(crate) fn hear(&mut self, heard: &StreamMessage) {
        match heard.topic {
            Topic::Sizes => self.hear_sizes(heard.from, &heard.text),
            Topic::Tallies => self.hear_tallies(heard.from, &heard.text),
            Topic::TicketKeys => self.hear_ticket_keys(heard.from, &heard.text),
        }
    }

    /// Notes that a message under the right key was refused because of its clock, `ago` before now.
    fn note_stale(&mut self, sender: Ipv4Addr, theirs: Clock, ours: Clock, ago: Duration) {
        if (self.peers.clocks).note_refused(self.now(), sender, theirs, ours, ago) {
            // The node refuses messages from here, but its connections go on: it is not dead.
            self.peers.liveness.handle_sign(self.now(), sender.into());
            self.note_deaf(sender, true);
        }
    }

    fn note_rejected(&mut self, sender: Ipv4Addr, reject: Reject, version: Option<u8>) {
        if self.local.config.node_at(sender.into()).is_some() {
            self.note_unintelligible(sender, reject);
            if let (Reject::BadVersion, Some(version)) = (reject, version) {
                self.peers.versions.note_other(self.now(), sender, version);
            }
        }
    }

    /// Learns which messages of other nodes the programs have refused: those never reach the daemon's socket.
    pub(crate) fn hear_of_refused(&mut self) -> Result<()> {
        for sender in heartbeat::peers(&self.local.config, self.local.address) {
            let Some(refusals) = self.peers.refused.look(sender)? else {
                continue;
            };
            if let Some(version) = refusals.version {
                self.note_rejected(sender, Reject::BadVersion, Some(version));
            }
            if refusals.bad_tag {
                self.note_rejected(sender, Reject::BadTag, None);
            }
            if let Some((ahead_ns, ago)) = refusals.stale {
                let ours = clock_now().before(ago);
                let theirs = Clock::from_nanos(ours.as_nanos().wrapping_add_signed(ahead_ns));
                self.note_stale(sender, theirs, ours, ago);
                self.note_rejected(sender, Reject::Stale, None);
            }
        }
        Ok(())
    }

    /// Notes whether a node's clock is so wrong that it refuses messages. Such a node keeps its connections and gets
    /// no new ones.
    fn note_deaf(&mut self, node: Ipv4Addr, deaf: bool) {
        if self.local.me.roles.needs_liveness() {
            logged(self.tables.mark_deaf(&self.dataplane, node.into(), deaf));
            self.peers
                .membership
                .handle_deafness(self.now(), node.into(), deaf);
        }
    }

    pub(crate) fn handle_hop(&mut self, found: next_hops::Found) -> Result<()> {
        // A node that hears nobody is cut off itself, and must not take the others for unreachable: once it is back, it
        // would refuse connections that are theirs.
        if found.1.is_none() && self.peers.liveness.is_cut_off(self.now()) {
            return Ok(());
        }
        let name = self
            .local
            .config
            .node_at(found.0.into())
            .map(|node| node.name.to_string());
        next_hops::log_change(name.as_deref().unwrap_or("?"), &found);
        self.tables
            .write_hop(&self.dataplane, &self.local, &self.messenger.keys, found)?;
        self.look_after_channels();
        self.assign_all()
    }

    pub(crate) fn handle_events(&mut self) -> Result<()> {
        let now = self.now();
        let died = self.note_liveness()?;
        // On a data server, the nodes that are heard decide which node a CLAIM asks next.
        let mut assign = false;
        while let Some(event) = self.peers.membership.poll(now) {
            match event {
                Event::CameUp { node } => {
                    info!(node, "is heard: its heartbeats arrive");
                    assign |= self.local.me.roles.is_ds();
                }
                Event::WentSilent { node } => {
                    warn!(node, "is silent: its heartbeats do not arrive");
                    assign |= self.local.me.roles.is_ds();
                }
                Event::Passing { node, service } => info!(node, service, "serves"),
                Event::Failing { node, service } => {
                    warn!(node, service, "does not serve: its own check fails")
                }
                Event::Draining { node } => info!(node, "drains: no new requests go there"),
                Event::Undrained { node } => info!(node, "no longer drains"),
                Event::UsableChanged { .. } => assign = true,
            }
        }
        if assign {
            self.assign_all()?;
        }
        self.mark_dead_servers(&died)
    }

    /// Tells the programs which data servers serve which pools. Writes only what changed.
    pub(crate) fn assign_all(&mut self) -> Result<()> {
        let now = self.now();
        self.dispatcher
            .follow(now, &self.local, &self.peers.membership)?;
        let roles = self.local.me.roles;
        if let Some(switch) = self.dataplane.as_switch() {
            let idle = self.local.config.cs.idle;
            let maps = (&self.dataplane, switch);
            self.tables
                .write_maglev_slots(maps, &self.local, now, idle, &self.peers.membership)?;
        }
        self.write_rings()?;
        let services = if roles.is_cs() {
            services_with_places(self.local.config.services.iter())?
        } else if roles.is_ds() {
            let held = self
                .deconfigured
                .held(&self.local.config, &self.local.me.name)?;
            let is_routed = |(_, service): &Placed<'_>| service.owner_routes();
            held.into_iter().filter(is_routed).collect()
        } else {
            return Ok(());
        };
        for placed in services {
            self.tables.write_assignment(
                &self.dataplane,
                now,
                placed,
                &self.local.me.name,
                &self.peers.membership,
            )?;
        }
        Ok(())
    }

    /// Tells the program of a data server which node it asks next where a connection is (CLAIM).
    pub(crate) fn write_rings(&mut self) -> Result<()> {
        let Some(server) = self.dataplane.as_data_server() else {
            return Ok(());
        };
        let (now, own) = (self.now(), self.local.address);
        let services = self.local.config.services_of(&self.local.me.name);
        let services = services_with_places(services)?;
        self.tables
            .write_rings(server, now, own, &services, &self.peers.membership)
    }

    /// Writes the assignments again when a policy that depends on load is due.
    fn follow_loads(&mut self) -> Result<()> {
        if self.tables.is_due(self.now()) || self.dispatcher.is_due(self.now()) {
            self.assign_all()
        } else {
            Ok(())
        }
    }

    /// One heartbeat, due once every `hello`: writes the clock for the programs, sends HELLO to the other nodes, and
    /// looks at the loads that they reported.
    pub(crate) async fn beat(&mut self) {
        logged(self.hear_of_refused());
        logged(self.tables.write_settings(&self.dataplane, &self.local));
        let services = self.services_said();
        let messages = self.heartbeat.next(self.drain.is_on(), &services);
        if self.local.me.roles.is_ds() {
            // A data server takes its own HELLO without the network.
            for message in &messages {
                let own = self.local.address;
                let message = self.messenger.sealed(message, own);
                self.handle_message(own, &message, clock_now().into());
            }
        }
        for peer in heartbeat::peers(&self.local.config, self.local.address) {
            for message in &messages {
                self.messenger.send(peer, message).await;
            }
        }
        self.send_orders();
        logged(self.follow_loads());
    }

    /// What this node's HELLO says of services. A data server reports the health of its own server for each service; a
    /// connection server behind a switch reports whether it has a data server at all.
    fn services_said(&self) -> Vec<HelloService> {
        let mut said = Vec::new();
        let services = services_with_places(self.local.config.services_of(&self.local.me.name));
        if let (Ok(services), Some(server)) = (services, &self.data_server) {
            said.extend(services.into_iter().map(|(at, _)| HelloService {
                cluster: endpoint(at),
                health: server.checks.health(at),
                connections: server.connections.at(at),
            }));
        }
        if let Some(server) = &self.connection_server
            && self.local.config.switch().is_some()
        {
            let health = if self.tables.can_serve() {
                Health::Passing
            } else {
                Health::Failing
            };
            said.push(HelloService {
                cluster: FRONT,
                health,
                connections: server.swept.live,
            });
        }
        said
    }
}
