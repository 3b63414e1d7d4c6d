//! Handles an operator's request for a migration, and checks whether it is possible.

use std::net::Ipv4Addr;

use anyhow::{Context, Result, bail, ensure};
use baton_config::Node;

use super::{
    State,
    shared::{Order, partners},
    state::{Doing, Running},
};
use crate::status::speaks;
use crate::{daemon::Daemon, local_node::LocalNode, operator::control::Response};

impl Daemon {
    /// Answers `baton migrate FROM TO`, which may be run at any node.
    pub(crate) fn answer_migrate(&mut self, from: &str, to: &str) -> Response {
        answered(self.migrate_from(from, to).map(migration))
    }

    /// Answers how the migration between these two nodes is getting on.
    pub(crate) fn answer_migration(&mut self, from: &str, to: &str) -> Response {
        if from == self.local.me.name.as_str() {
            return migration(self.migrations.state());
        }
        answered(self.told_of_migration(from, to))
    }

    fn migrate_from(&mut self, from: &str, to: &str) -> Result<State> {
        let (source, target) = check(&self.local, from, to)?;
        if source.name == self.local.me.name {
            return self.migrate(from, to);
        }
        let ends = (v4(source)?, v4(target)?);
        self.order_migration((from, ends.0), (to, ends.1))
    }

    /// Begins a migration from this node, which is the one called `from`, to another.
    ///
    /// # Errors
    /// The migration is not possible; the error says why, and what to do.
    pub(crate) fn migrate(&mut self, from: &str, to: &str) -> Result<State> {
        let (_, to) = check(&self.local, from, to)?;
        let is_partner = partners(&self.local).any(|node| node.name == to.name);
        ensure!(
            is_partner,
            "{to} cannot take over from {from}: clients' packets for {from}'s cluster addresses never come to it; name both as candidates in [failover], or in the services' connection_servers",
            to = to.name
        );
        let (name, address) = (to.name.to_string(), v4(to)?);
        self.expect_to_be_heard(&name, address)?;
        if self.moves_addresses() {
            let status = self.failover_status().unwrap_or_default();
            let front = status.front.as_deref().unwrap_or("nobody");
            ensure!(
                status.state == "front",
                "{from} is not in front: {front} is, so there is nothing to take over; `baton migrate {front} …` moves from there"
            );
        }
        let by_hand = !self.moves_addresses();
        let order = Order {
            to: address,
            name: name.clone(),
            by_hand,
        };
        let mut state = self.migrations.shared.state();
        ensure!(
            state.running.is_none(),
            "a migration to {} is under way; wait until it has ended (`baton status` shows it)",
            state.to.as_deref().unwrap_or("another node")
        );
        let sent = self.migrations.orders.try_send(order);
        sent.context("the task that migrates has ended: restart this node's daemon")?;
        state.to = Some(name);
        state.ended = None;
        state.by_hand = by_hand;
        state.running = Some(Running {
            stage: Doing::Asking,
            pass: 0,
            came: 0,
            entries: 0,
        });
        state.totals.begun += 1;
        Ok(state.clone())
    }

    /// Fails at once if this node is known to be refused by the other one, because of its version or clock. Otherwise
    /// the operator would wait for a timeout.
    pub(super) fn expect_to_be_heard(&self, name: &str, address: Ipv4Addr) -> Result<()> {
        let now = self.now();
        if let Some(version) = self.peers.versions.of(now, address) {
            bail!("{name} {}; nothing has moved", speaks(version));
        }
        let stale = self.dataplane.stale_senders()?;
        if let Some(skew) = self.peers.clocks.of(now, address, stale.get(&address))
            && skew.refused
        {
            bail!(
                "{name}'s clock differs from this node's by {} s, so they refuse each other's messages: set both by NTP; nothing has moved",
                skew.ms.unsigned_abs().div_ceil(1000)
            );
        }
        Ok(())
    }
}

fn answered(result: Result<Response>) -> Response {
    result.unwrap_or_else(Response::from)
}

fn migration(state: State) -> Response {
    Response::Migration(Box::new(state))
}

fn v4(node: &Node) -> Result<Ipv4Addr> {
    let address = node.address.ipv4();
    address.with_context(|| format!("{}: its address must be IPv4 in this version", node.name))
}

/// Finds the two nodes, and makes the checks that do not depend on which node is asked.
fn check<'a>(local: &'a LocalNode, from: &str, to: &str) -> Result<(&'a Node, &'a Node)> {
    let config = &local.config;
    let named = |name: &str| {
        let names: Vec<&str> = (config.connection_servers())
            .map(|node| node.name.as_str())
            .collect();
        config.node_named(name).with_context(|| {
            format!(
                "there is no node {name} in {}; connection servers are {}",
                local.file.display(),
                names.join(", ")
            )
        })
    };
    let source = named(from)?;
    let target = named(to)?;
    ensure!(
        from != to,
        "{from} to itself: there is nothing to migrate; name another connection server"
    );
    for node in [source, target] {
        ensure!(
            node.roles.is_cs(),
            "{} is no connection server: it has the roles {}; name two nodes with the role \"cs\"",
            node.name,
            node.roles
        );
    }
    if let Some(switch) = config.switch() {
        bail!(
            "the switch {} shares clients out among the connection servers, so none takes over from another",
            switch.name
        );
    }
    Ok((source, target))
}
