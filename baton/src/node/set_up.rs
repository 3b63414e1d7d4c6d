//! Setting a node up, at the start and again with another configuration.

use anyhow::Result;
use baton_config::ClusterAddress;
use baton_dataplane::{Options, XdpMode};
use baton_net::Sysctl;
use tracing::{info, warn};

use super::{
    announcer, control,
    daemon::Daemon,
    metrics, next_hops, relay,
    tables::{self, services_with_places},
};

impl Daemon {
    /// Maps before programs, programs before addresses, so that no packet ever meets a half.
    pub(super) async fn set_up(&mut self, options: &Options) -> Result<()> {
        if self.place.me.roles.is_ds() {
            self.relay = relay::Running::start(&mut self.host).await?;
            self.tables
                .relay_at(self.relay.as_ref().map_or(0, |relay| relay.port));
        }
        self.write_maps().await?;
        if self.place.me.roles.is_cs() {
            self.judge.start(&self.dataplane, &self.place)?;
        }
        self.dataplane.attach(self.place.link.index, options)?;
        if self.dataplane.xdp_mode() == Some(XdpMode::Generic) {
            warn!(
                "the driver of {} knows no XDP: generic mode, slower",
                self.place.link.name
            );
        }
        if self.place.me.roles.is_ds() && !self.dataplane.gives_windows() {
            warn!("no cgroup2 is mounted: connections that are handed over begin slowly again");
        }
        if self.dataplane.taken_over() {
            info!("took over the packet path of an earlier daemon");
        }
        self.take_addresses().await?;
        self.check_servers()?;
        let config = &self.place.config;
        control::listen(
            &control::socket_path(config),
            self.inbox.calls_sender.clone(),
        )?;
        if let Some(address) = config.local.metrics {
            metrics::serve(address, self.inbox.calls_sender.clone()).await?;
        }
        Ok(())
    }

    /// Everything that depends on the configuration, from scratch.
    pub(super) async fn write_maps(&mut self) -> Result<()> {
        let now = self.now();
        let config = &self.place.config;
        self.tables.write_settings(&self.dataplane, &self.place)?;
        let of_node = services_with_places(config.services_of(&self.place.me.name))?;
        let held: Vec<_> = of_node.into_iter().chain(self.leaving.services()).collect();
        let roles = self.place.me.roles;
        let services = if roles.is_cs() || roles.is_switch() {
            services_with_places(config.services.iter())?
        } else {
            held.clone()
        };
        self.tables.write_services(&self.dataplane, &services)?;
        if let Some(relay) = &self.relay {
            relay.serve(held.iter().map(|(at, _)| *at));
        }
        let addresses = if roles.is_ds() {
            tables::node_addresses(config)
        } else if roles.is_switch() {
            tables::connection_server_addresses(config)
        } else {
            tables::data_server_addresses(config)
        };
        if roles.is_cs() {
            let addresses = tables::data_server_addresses(config);
            self.tables.assign_slots(now, &addresses)?;
        } else {
            self.tables.write_names(&self.dataplane, &services)?;
        }
        if roles.is_switch() {
            self.tables.assign_slots(now, &addresses)?;
        }
        for (address, hop) in next_hops::look(&self.place.netlink, &addresses).await {
            self.tables
                .write_hop(&self.dataplane, &self.place, address, hop)?;
        }
        self.wanted_hops.send_replace(addresses);
        self.look_after_channels();
        if roles.is_cs() {
            self.tables.write_all_again();
            self.assign_all()?;
            let services = services_with_places(self.place.config.services.iter())?;
            self.tables
                .write_routes(&self.dataplane, &services, &self.judge, &self.place)?;
        } else {
            self.assign_all()?;
        }
        self.follow_at_desk()
    }

    /// What this data server knows of its services by looking. Health checks go to the cluster addresses.
    /// Those must be here before: else a check would go out, to the connection server, and say how another
    /// data server does.
    pub(super) fn check_servers(&mut self) -> Result<()> {
        if self.place.me.roles.is_ds() {
            let config = &self.place.config;
            let of_node = services_with_places(config.services_of(&self.place.me.name))?;
            self.checks.follow(of_node);
            let of_node = services_with_places(config.services_of(&self.place.me.name))?;
            self.sizes.follow(of_node);
        }
        Ok(())
    }

    /// The cluster addresses: where this node answers ARP for them if it is in front, else where nobody
    /// hears of them.
    pub(super) async fn take_addresses(&mut self) -> Result<()> {
        let interface = self.place.link.name.clone();
        let wanted = self.held_addresses();
        let config = &self.place.config;
        let (shown, hidden): (Vec<ClusterAddress>, Vec<_>) =
            (wanted.into_iter()).partition(|address| config.answers_for(&self.place.me, *address));
        if !hidden.is_empty() || shown.is_empty() {
            // Not to answer for an address of another interface, nor to ask in its name.
            self.host.set(&Sysctl::arp_ignore(&interface)?, "1")?;
            self.host.set(&Sysctl::arp_announce(&interface)?, "2")?;
        }
        for address in hidden {
            self.host.add_address("lo", address.ip()).await?;
        }
        let mut taken = Vec::new();
        for address in shown {
            self.host.add_address(&interface, address.ip()).await?;
            if let std::net::IpAddr::V4(address) = address.ip() {
                taken.push(address);
            }
        }
        if !taken.is_empty() {
            announcer::announce_all(&self.place.link, &taken);
        }
        Ok(())
    }
}
