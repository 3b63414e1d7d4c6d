//! Applying another configuration without a restart.

use std::net::SocketAddrV4;

use anyhow::{Result, bail};
use baton_config::{ClusterAddress, Config, Service, diff};
use tracing::{error, info};

use crate::{
    daemon::Daemon,
    local_node::cluster_of,
    peers::keys,
    places::services_with_places,
    service_manager::{News, tell},
    tables::check_routes,
};

impl Daemon {
    /// Reads the configuration file and applies all of it. A file that is wrong, needs a restart or cannot be applied
    /// changes nothing.
    pub(crate) async fn reload(&mut self) -> Result<String> {
        tell(&[News::Reloading]);
        let outcome = self.apply().await;
        tell(&[News::Ready]);
        outcome
    }

    async fn apply(&mut self) -> Result<String> {
        let new = Config::read(&self.local.file)?.config;
        // This must come before anything of the new configuration is applied.
        check_routes(&new.services)?;
        let changes = match diff(&self.local.config, &new, &self.local.me.name) {
            Ok(None) => {
                // Files that the configuration names may have changed: those of certificates.
                self.speak_tls().await?;
                return Ok("nothing changed in the configuration".into());
            }
            Ok(Some(changes)) => changes,
            Err(reasons) => {
                let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
                bail!("only a restart can apply this: {}", reasons.join("; "));
            }
        };
        let before = self.local.config.clone();
        if let Err(error) = self.switch_to(new).await {
            if let Err(error) = self.switch_to(before).await {
                error!("cannot go back to the configuration before; restart this node: {error:#}");
            }
            return Err(error);
        }
        Ok(format!(
            "reloaded: {} of {} node(s) and {} of {} service(s) are new or changed",
            changes.nodes,
            self.local.config.nodes.len(),
            changes.services,
            self.local.config.services.len(),
        ))
    }

    /// Has the node follow this configuration. After an error it follows some of it.
    async fn switch_to(&mut self, new: Config) -> Result<()> {
        let me = new.this_node(self.local.me.name.as_str())?.clone();
        let cluster = cluster_of(&new, &me)?;
        let addresses = self.held_places();
        let before = self.served()?;
        self.local.config = new;
        self.local.me = me;
        self.messenger.keys = keys::key_ring_over(&self.dataplane, &self.local)?;
        let now = self.now();
        if self.local.me.roles.is_ds() && !self.local.me.roles.is_cs() {
            let after = services_with_places(self.local.config.services_of(&self.local.me.name))?;
            self.deconfigured.note(now, &before, &after);
        }
        self.peers
            .membership
            .reconfigure(now, cluster, self.local.config.cluster.silence);
        self.clock.retime(self.local.config.cluster.hello);
        self.retime_failover();
        self.write_maps().await?;
        self.take_addresses().await?;
        self.check_servers()?;
        self.streams.rekey(self.messenger.keys.clone());
        self.tell_sizes();
        self.reconfigure_tallies()?;
        if self.routes_by_size() {
            self.write_sizes()?;
        }
        self.give_up(&addresses).await
    }

    /// Lets go of services that this node was taken out of and whose last connection has ended.
    pub(crate) async fn leave(&mut self) -> Result<()> {
        let Some(server) = &self.data_server else {
            return Ok(());
        };
        let addresses = self.held_places();
        let gone = self.deconfigured.end(self.now(), &server.connections);
        if gone.is_empty() {
            return Ok(());
        }
        info!(services = ?gone, "no longer served here: their last connection has ended");
        self.write_maps().await?;
        self.give_up(&addresses).await
    }

    /// The cluster addresses that this node needs.
    pub(crate) fn held_addresses(&self) -> Vec<ClusterAddress> {
        let mut held = self.local.cluster_addresses();
        held.extend(self.deconfigured.addresses());
        held.sort();
        held.dedup();
        held
    }

    /// The cluster addresses that this node needs, each with the interfaces that hold it.
    pub(crate) fn held_places(&self) -> Vec<(ClusterAddress, String)> {
        let places = |address| {
            let holders = self.holders(address).into_iter();
            holders.map(move |at| (address, at))
        };
        self.held_addresses().into_iter().flat_map(places).collect()
    }

    /// The services that this node serves as a data server, with their places.
    fn served(&self) -> Result<Vec<(SocketAddrV4, Service)>> {
        let services = services_with_places(self.local.config.services_of(&self.local.me.name))?;
        let owned = services.into_iter().map(|(at, one)| (at, one.clone()));
        Ok(owned.collect())
    }

    /// Removes each of these addresses from its interface if it is no longer needed there.
    pub(crate) async fn give_up(&mut self, addresses: &[(ClusterAddress, String)]) -> Result<()> {
        let kept = self.held_places();
        for (address, at) in addresses.iter().filter(|local| !kept.contains(local)) {
            self.host.remove_address(at, address.ip()).await?;
        }
        Ok(())
    }
}
