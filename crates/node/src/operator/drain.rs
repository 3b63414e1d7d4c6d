//! Drain: a data server takes no new requests. An operator orders it at that node, or at any node that has the
//! cluster's secret.
//!
//! ```text
//!  baton drain ds1 --> daemon here --ORDER, again and again--> daemon of ds1 --HELLO: draining--> all
//! ```
//!
//! `data_server::idle_handover` has the data server's idle connections leave, and `resume::moving` has responses that
//! are under way go on from another data server.

use std::{fs, io, net::Ipv4Addr, path::PathBuf};

use anyhow::{Context, Result, bail};
use baton_config::{Config, Node};
use baton_core::{membership::Membership, orders::Orders};
use baton_wire::{Address, Message, Order, Verb};
use serde::{Deserialize, Serialize};
use tracing::{info, warn};

use crate::status::speaks;
use crate::{
    daemon::Daemon,
    peers::heartbeat::clock_now,
    tables::{endpoint, pools, service_at},
};

/// What an operator asks of the daemon about draining.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Wish {
    /// The name of the node that is to drain.
    pub node: String,
    /// Whether the node is to take requests again instead.
    pub undo: bool,
    /// Whether the node is to drain even if no other one takes its requests.
    pub force: bool,
    /// Whether the node is to drain only until its daemon ends. This can be asked only at that node.
    pub until_end: bool,
}

/// Whether this node drains, and which orders it has given to other nodes.
#[derive(Default)]
pub struct Drain {
    /// The file whose existence tells the next daemon to drain.
    note: PathBuf,
    noted: bool,
    until_end: bool,
    pub(crate) orders: Orders,
}

impl Drain {
    /// Begins as the daemon before this one left it.
    pub fn resumed(config: &Config) -> Self {
        let note = config.local.run_dir.join("draining");
        let noted = note.exists();
        if noted {
            info!(
                "draining, as before: {}; `baton drain --undo` ends it",
                note.display()
            );
        }
        Self {
            note,
            noted,
            ..Self::default()
        }
    }

    /// Whether this node takes no new requests.
    pub fn is_on(&self) -> bool {
        self.noted || self.until_end
    }

    fn begin(&mut self, until_end: bool) -> Result<()> {
        if !self.is_on() {
            info!("draining: no new requests here from now on");
        }
        if until_end {
            self.until_end = true;
            return Ok(());
        }
        fs::write(&self.note, "").with_context(|| self.cannot_note())?;
        self.noted = true;
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        match fs::remove_file(&self.note) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).with_context(|| self.cannot_note());
            }
            _ => {}
        }
        if self.is_on() {
            info!("not draining any more: requests come here again");
        }
        (self.noted, self.until_end) = (false, false);
        Ok(())
    }

    fn cannot_note(&self) -> String {
        format!(
            "cannot note it for the next daemon in {}",
            self.note.display()
        )
    }
}

impl Daemon {
    /// Begins or ends draining if the wish is about this node; otherwise begins to send an order to the node that it is
    /// about. The returned text is for people.
    pub(crate) fn drain(&mut self, wish: &Wish) -> Result<String> {
        let node = self.find(wish)?;
        let address = Address::from(node.address.ip());
        if !wish.undo && !wish.force && !self.membership.is_draining(address) {
            let config = &self.place.config;
            if let Some(what) = left_to_nobody(config, &node, &self.membership)? {
                bail!(
                    "{} is the last data server that takes requests of {what}: clients would get a 503, or a \
                     RST; let another one take them first (`baton drain OTHER --undo`), or do it anyway with \
                     --force",
                    node.name
                );
            }
        }
        let verb = if wish.undo {
            Verb::Undrain
        } else {
            Verb::Drain
        };
        if node.name == self.place.me.name {
            self.obey(verb, wish.until_end)?;
            return Ok(format!("{}: done", node.name));
        }
        if wish.until_end {
            bail!(
                "only {} itself can be told to drain until its daemon ends: run this there",
                node.name
            );
        }
        self.expect_to_lead()?;
        let now = self.now();
        if let Some(version) = (node.address.ipv4()).and_then(|at| self.versions.of(now, at)) {
            bail!("{} {}; it has not been told", node.name, speaks(version));
        }
        self.drain.orders.give(now, clock_now(), address, verb);
        Ok(format!("{}: told", node.name))
    }

    /// Fails if this node has only its own keys, because other nodes take no orders from such a node.
    pub(crate) fn expect_to_lead(&self) -> Result<()> {
        let me = &self.place.me;
        if me.own_keys {
            bail!(
                "{} has only its own keys (own_keys), and other nodes take no commands from it: run this on a node \
                 that has the cluster's secret, or on the one that it is about",
                me.name
            );
        }
        Ok(())
    }

    /// Handles an order that another node has sent to this one.
    pub(crate) fn handle_order(&mut self, sender: Ipv4Addr, order: Order) {
        if matches!(order.verb, Verb::Migrate(_) | Verb::Tell) {
            return self.handle_migrate_order(sender, order);
        }
        let Some(verb) = self.drain.orders.take(sender.into(), order) else {
            return;
        };
        if !self.place.me.roles.is_ds() {
            warn!(%sender, ?verb, "an order for a data server, which this node is not");
        } else if let Err(error) = self.obey(verb, false) {
            warn!(%sender, ?verb, "cannot do what was ordered: {error:#}");
        }
    }

    /// Sends again the orders that the other nodes' HELLOs do not yet show to be carried out.
    pub(crate) fn send_orders(&mut self) {
        let membership = &self.membership;
        let is_done = |to, verb| membership.is_draining(to) == (verb == Verb::Drain);
        for (to, order) in self.drain.orders.poll(self.now(), is_done) {
            if let std::net::IpAddr::V4(to) = to.ip() {
                self.outbox.push((to, Message::Order(order)));
            }
        }
    }

    /// Begins or ends draining at this node. The next heartbeat tells the other nodes.
    fn obey(&mut self, verb: Verb, until_end: bool) -> Result<()> {
        match verb {
            Verb::Drain => self.drain.begin(until_end),
            Verb::Undrain => self.drain.end(),
            // `handle_order()` has dealt with these.
            Verb::Migrate(_) | Verb::Tell => Ok(()),
        }
    }

    fn find(&self, wish: &Wish) -> Result<Node> {
        let config = &self.place.config;
        let names = || {
            let names: Vec<_> = config
                .data_servers()
                .map(|node| node.name.as_str())
                .collect();
            names.join(", ")
        };
        let Some(node) = config.node_named(&wish.node) else {
            bail!(
                "there is no node {:?} in {}; data servers are: {}",
                wish.node,
                self.place.file.display(),
                names()
            );
        };
        if !node.roles.is_ds() {
            bail!(
                "{} is no data server, and only those drain: {}",
                node.name,
                names()
            );
        }
        if self.place.me.roles.is_switch() {
            bail!("a switch does not hear data servers: run this on another node");
        }
        Ok(node.clone())
    }
}

/// The first pool or service, described for people, for which this node alone takes requests. `None`: there is none.
fn left_to_nobody(config: &Config, node: &Node, membership: &Membership) -> Result<Option<String>> {
    for service in &config.services {
        let at = service_at(service)?;
        let usable = membership.usable(endpoint(at));
        for (index, pool) in pools(at, service).enumerate() {
            let mut takers = (usable.into_iter())
                .flat_map(|usable| usable.among(|server| pool.has(server)))
                .map(|server| server.name.as_str());
            let (mut takes, mut others) = (false, false);
            takers.by_ref().for_each(|name| {
                takes |= name == node.name.as_str();
                others |= name != node.name.as_str();
            });
            if takes && !others {
                // The first pool is the service's own.
                let name = index.checked_sub(1).map(|index| &service.pools[index].name);
                let pool = name.map_or(String::new(), |name| format!("pool {name} of "));
                return Ok(Some(format!("{pool}service {}", service.name)));
            }
        }
    }
    Ok(None)
}
