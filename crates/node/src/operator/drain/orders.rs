//! Orders to drain, or to take requests again: to this node, and to others.

use std::net::{IpAddr, Ipv4Addr};

use anyhow::{Result, bail};
use baton_config::{Config, Node};
use baton_core::{
    membership::Membership,
    operator_order::{GivenOrder, Standing},
};
use baton_wire::{Account, Address, Message, Order, Verb};
use tracing::warn;

use crate::{
    daemon::Daemon,
    operator::{
        account::account,
        control::{DrainRequest, Response},
    },
    peers::heartbeat::clock_now,
    places::{endpoint, service_at},
    status::speaks,
    tables::pools,
};

impl Daemon {
    /// Begins or ends draining if the wish is about this node; otherwise begins to send an order to the node that it is
    /// about. The returned text is for people.
    pub(crate) fn drain(&mut self, wish: &DrainRequest) -> Result<String> {
        let node = self.find(wish)?;
        let address = Address::from(node.address.ip());
        if !wish.undo && !wish.force && !self.peers.membership.is_draining(address) {
            let config = &self.local.config;
            if let Some(what) = left_to_nobody(config, &node, &self.peers.membership)? {
                bail!(
                    "{} is the last data server that takes requests of {what}: clients would get a 503, or a \
                     RST; let another one take them first (`baton drain OTHER --undo`), or do it anyway with \
                     --force",
                    node.name
                );
            }
        }
        if node.name == self.local.me.name {
            self.obey(wish.undo, wish.until_end)?;
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
        if let Some(version) = (node.address.ipv4()).and_then(|at| self.peers.versions.of(now, at))
        {
            bail!("{} {}; the order was not sent", node.name, speaks(version));
        }
        let verb = if wish.undo {
            Verb::Undrain
        } else {
            Verb::Drain
        };
        let before = self.drain.given.get(&address);
        let order = GivenOrder::new(now, clock_now(), before, address, verb);
        self.drain.given.insert(address, order);
        self.send_orders();
        Ok(format!("{}: told", node.name))
    }

    /// Fails if this node has only its own keys, because other nodes take no orders from such a node.
    pub(crate) fn expect_to_lead(&self) -> Result<()> {
        let me = &self.local.me;
        if me.own_keys {
            bail!(
                "{} has only its own keys (own_keys), and other nodes take no commands from it: run this on a node \
                 that has the cluster's secret, or on the node concerned",
                me.name
            );
        }
        Ok(())
    }

    /// Handles another node's order to drain, or to take requests again.
    pub(crate) fn handle_drain_order(&mut self, sender: Ipv4Addr, order: Order) {
        let from = Address::from(sender);
        if self.drain.taken.is_new(from, order.number) {
            let response = match self.obey(order.verb == Verb::Undrain, false) {
                Ok(()) => Response::Done {
                    message: String::new(),
                },
                Err(error) => {
                    warn!(%sender, verb = ?order.verb, "cannot do what was ordered: {error:#}");
                    error.into()
                }
            };
            self.drain.taken.note(from, order.number, response);
        }
        let response = self.drain.taken.became(from, order.number);
        if let Some(account) = response.and_then(|response| account(order.number, response)) {
            self.messenger.queue(sender, Message::Account(account));
        }
    }

    /// Handles another node's account of whether it has begun or ended draining, as it was ordered to. Accounts of
    /// other orders change nothing here.
    pub(crate) fn handle_drain_account(&mut self, sender: Ipv4Addr, account: &Account) {
        let now = self.now();
        let Some(given) = self.drain.given.get_mut(&sender.into()) else {
            return;
        };
        let is_first = given.standing(now) == Standing::Ordered;
        given.handle_account(now, sender.into(), account);
        if let (true, Standing::Said(text)) = (is_first, given.standing(now))
            && let Ok(Response::Failed { message }) = serde_json::from_str(text)
        {
            warn!(%sender, "does not do what was ordered: {message}");
        }
    }

    /// Sends the orders of which the other nodes have said nothing yet.
    pub(crate) fn send_orders(&mut self) {
        let now = self.now();
        let given = self.drain.given.values();
        let unanswered = given.filter(|order| order.standing(now) == Standing::Ordered);
        for (to, order) in unanswered.map(GivenOrder::ask) {
            if let IpAddr::V4(to) = to.ip() {
                self.messenger.queue(to, Message::Order(order));
            }
        }
    }

    /// Begins or ends draining at this node. The next heartbeat tells the other nodes.
    fn obey(&mut self, undo: bool, until_end: bool) -> Result<()> {
        if !self.local.me.roles.is_ds() {
            bail!(
                "{} is no data server, and only those drain",
                self.local.me.name
            );
        }
        if undo {
            self.drain.end()
        } else {
            self.drain.begin(until_end)
        }
    }

    fn find(&self, wish: &DrainRequest) -> Result<Node> {
        let config = &self.local.config;
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
                self.local.file.display(),
                names()
            );
        };
        if !node.roles.is_ds() {
            bail!(
                "{} is no data server, and only data servers drain: {}",
                node.name,
                names()
            );
        }
        if self.local.me.roles.is_switch() {
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
