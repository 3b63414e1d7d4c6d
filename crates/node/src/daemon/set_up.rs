//! Setting a node up, at the start and again with another configuration.

use std::{
    collections::HashSet,
    net::{IpAddr, Ipv4Addr},
    path::Path,
};

use anyhow::Result;
use baton_agent::Routing;
use baton_config::{ClusterAddress, FrontAddress};
use baton_dataplane::{Options, XdpMode};
use baton_net::Sysctl;
use tracing::{info, warn};

use crate::{
    daemon::Daemon,
    data_server::{agent, mptcp_relay, tls_agent},
    metrics,
    network::{announcer, next_hops},
    operator::control,
    peers::{heartbeat, keys},
    places::{Placed, services_with_places},
    tables,
};

impl Daemon {
    /// Sets up maps before programs, and programs before addresses, so that no packet meets a node that is half set up.
    pub(crate) async fn set_up(&mut self, options: &Options) -> Result<()> {
        if let Some(server) = &mut self.data_server {
            server.relay = mptcp_relay::Running::start(&mut self.host).await?;
            let port = server.relay.as_ref().map_or(0, |relay| relay.port);
            self.tables.set_relay_port(port);
        }
        self.write_maps().await?;
        self.dataplane.attach(&self.local.interfaces(), options)?;
        if self.dataplane.xdp_mode() == Some(XdpMode::Generic) {
            warn!(
                "XDP runs in generic mode on {}: several times slower than native. Switch off the merging of segments \
                 (GRO) there and at the interfaces below: ethtool -K NAME gro off",
                self.local.interface_names().join(", ")
            );
        }
        if self.local.me.roles.is_ds() && !self.dataplane.gives_windows() {
            warn!("no cgroup2 is mounted: each handover resets the congestion window");
        }
        if self.dataplane.taken_over() {
            info!("took over the packet path of an earlier daemon");
        }
        if !self.dataplane.made_anew().is_empty() {
            let maps = self.dataplane.made_anew().join(", ");
            info!(
                maps,
                "recreated, because an earlier version laid them out differently"
            );
        }
        self.set_interfaces_apart()?;
        self.start_failover().await?;
        self.take_addresses().await?;
        self.await_front().await;
        self.check_servers()?;
        let config = &self.local.config;
        if let Some(address) = config.local.metrics {
            metrics::serve(address, self.incoming.calls_sender.clone()).await?;
        }
        control::listen(
            &control::socket_path(config),
            self.incoming.calls_sender.clone(),
        )
    }

    /// Sets sysctls of the interfaces if there are several. ARP then answers for each address only at the interface
    /// that has it; otherwise the other networks would send clients' packets for the cluster address to this node. A
    /// data server then takes clients' packets by whichever interface the connection server sends them, not only by
    /// the one that leads back to the client.
    fn set_interfaces_apart(&mut self) -> Result<()> {
        if self.local.links.len() < 2 {
            return Ok(());
        }
        const STRICT: &str = "1";
        let of_all = Sysctl::rp_filter("all")?.read();
        for link in &self.local.links {
            self.host.set(&Sysctl::arp_ignore(&link.name)?, "1")?;
            self.host.set(&Sysctl::arp_announce(&link.name)?, "2")?;
            let filter = Sysctl::rp_filter(&link.name)?;
            // The kernel uses the larger of the two values; 2 is loose.
            let own = filter.read().unwrap_or_default();
            let is_strict =
                own == STRICT || own != "2" && of_all.as_deref().is_ok_and(|all| all == STRICT);
            if self.local.me.roles.is_ds() && is_strict {
                self.host.set(&filter, "2")?;
            }
        }
        Ok(())
    }

    /// Writes everything in the maps that depends on the configuration, from scratch.
    pub(crate) async fn write_maps(&mut self) -> Result<()> {
        let now = self.now();
        if self.local.me.roles.is_ds() {
            self.relay_to_containers().await?;
            self.speak_tls().await?;
        }
        let config = &self.local.config;
        let roles = self.local.me.roles;
        if roles.is_cs() || roles.is_ds() {
            let addresses = tables::data_server_addresses(config);
            self.tables.assign_slots(now, &addresses)?;
        }
        let held = self.deconfigured.held(config, &self.local.me.name)?;
        // The relay resets connections that are to none of its services, so it knows them before the programs know it.
        if let Some(relay) = self
            .data_server
            .as_ref()
            .and_then(|server| server.relay.as_ref())
        {
            relay.serve(held.iter().map(|(at, _)| *at));
        }
        let resumable: Vec<_> = (held.iter())
            .filter(|(_, service)| service.resumes())
            .map(|(at, _)| *at)
            .collect();
        let resumes = roles.is_ds() && !resumable.is_empty();
        let moves = roles.is_ds() && held.iter().any(|(_, service)| service.owner_routes());
        if !resumes {
            self.tables.set_resume_port(0);
        }
        if !moves {
            self.tables.set_reader_port(0);
        }
        self.tables.write_settings(&self.dataplane, &self.local)?;
        keys::write(&self.dataplane, &self.messenger.keys, config)?;
        let services = if roles.is_cs() || roles.is_switch() {
            services_with_places(config.services.iter())?
        } else {
            held.clone()
        };
        self.tables.write_services(&self.dataplane, &services)?;
        if let Some(server) = self.dataplane.as_data_server()
            && resumes
        {
            self.resume.tell_heads(server)?;
            Routing::default().prepare(&mut self.host).await?;
            let rules = self.current_rules.reader();
            self.resume.serve(resumable, server, rules)?;
            self.tables.set_resume_port(self.resume.port);
            self.tables.write_settings(&self.dataplane, &self.local)?;
        }
        let addresses = if roles.is_ds() {
            tables::node_addresses(config)
        } else if roles.is_switch() {
            tables::connection_server_addresses(config)
        } else {
            tables::data_server_addresses(config)
        };
        // Services whose requests are judged here get their flags together with their pools.
        let routed: Vec<_> = (held.iter().copied())
            .filter(|(_, service)| service.owner_routes())
            .collect();
        let mut reader_port = None;
        if let (Some(server), Some(maps)) = (&mut self.data_server, self.dataplane.as_data_server())
            && !routed.is_empty()
        {
            let agent = match server.agent.take() {
                Some(agent) => agent,
                None => agent::Running::start(maps, &self.local, &self.current_rules)?,
            };
            agent.serve(self.tables.served(&routed));
            if (routed.iter()).any(|(_, service)| service.dispatcher.is_some()) {
                agent.ask_dispatchers(maps, &self.local)?;
            }
            reader_port = Some(agent.port);
            server.agent = Some(agent);
        }
        if !roles.is_cs() {
            let is_named =
                |(_, service): &&Placed<'_>| roles.is_switch() || !service.owner_routes();
            let named: Vec<_> = services.iter().filter(is_named).copied().collect();
            self.tables.write_names(&self.dataplane, &named)?;
        }
        if roles.is_ds() && !roles.is_cs() {
            self.tables
                .write_routes(&self.dataplane, &routed, &self.current_rules, &self.local)?;
        }
        if roles.is_switch() {
            self.tables.assign_slots(now, &addresses)?;
        }
        self.tables.forget_senders(&self.local.config);
        for (address, hop) in next_hops::look(&self.local.netlink, &addresses).await {
            self.tables.write_hop(
                &self.dataplane,
                &self.local,
                &self.messenger.keys,
                (address, hop),
            )?;
        }
        self.wanted_hops.send_replace(addresses);
        self.watch_liveness();
        let others = heartbeat::peers(&self.local.config, self.local.address);
        self.peers.refused.follow(&others.into_iter().collect())?;
        self.look_after_channels();
        self.migrations.follow(&self.local);
        if roles.is_cs() {
            self.tables.write_all_again();
            self.assign_all()?;
            let services = services_with_places(self.local.config.services.iter())?;
            self.tables.write_routes(
                &self.dataplane,
                &services,
                &self.current_rules,
                &self.local,
            )?;
        } else {
            self.assign_all()?;
        }
        self.judge_tls()?;
        // The agent knows the routes now, by which it judges what it reads.
        if let Some(port) = reader_port {
            self.tables.set_reader_port(port);
            self.tables.write_settings(&self.dataplane, &self.local)?;
        }
        // The services must be in the maps before this: the program cannot tell where a response ends if it has not
        // seen it begin.
        self.dataplane.follow_responses(
            resumes || moves,
            &self.local.interfaces(),
            &self.local.options(),
        )?;
        let now = self.now();
        self.dispatcher
            .follow(now, &self.local, &self.peers.membership)
    }

    /// Has the TLS agent serve the services of this data server whose servers speak no TLS, or that have no servers. It
    /// listens before the programs bring it connections. The files of certificates are read each time.
    pub(super) async fn speak_tls(&mut self) -> Result<()> {
        let held = self
            .deconfigured
            .held(&self.local.config, &self.local.me.name)?;
        let directory = self.local.file.parent().unwrap_or(Path::new(""));
        let wanted = tls_agent::settings(&held, directory, self.local.config.local.kernel_tls);
        if !wanted.services.is_empty() {
            Routing::default().prepare(&mut self.host).await?;
        }
        match &self.data_server {
            Some(server) => server.tls_agent.serve(wanted).await,
            None => Ok(()),
        }
    }

    /// Has the requests judged that come by TLS, of services whose routes need them.
    fn judge_tls(&mut self) -> Result<()> {
        let held = self
            .deconfigured
            .held(&self.local.config, &self.local.me.name)?;
        let judged: Vec<_> = (held.into_iter())
            .filter(|(_, service)| service.routes_inside_tls())
            .collect();
        let others: HashSet<Ipv4Addr> = (judged.iter())
            .flat_map(|(_, service)| self.local.config.data_servers_of(service))
            .filter_map(|node| node.address.ipv4())
            .filter(|node| *node != self.local.address)
            .collect();
        let asks = others
            .into_iter()
            .map(|node| (node, self.streams.asking(node)));
        let asks = asks.collect();
        let (Some(server), Some(maps)) = (&self.data_server, self.dataplane.as_data_server())
        else {
            return Ok(());
        };
        let rules = match self.current_rules.reader().rule_set() {
            Some(rules) if !judged.is_empty() => {
                rules.request_rules(self.tables.judged(&judged), self.local.address)
            }
            _ => None,
        };
        server.tls_agent.judge(rules, asks, maps, &self.local)
    }

    /// Follows the health and the large files of this data server's services. Health checks go to the cluster
    /// addresses, so this node must have those addresses before. Otherwise a check would leave for the connection
    /// server and report the health of another data server.
    pub(crate) fn check_servers(&mut self) -> Result<()> {
        if let Some(server) = &mut self.data_server {
            let config = &self.local.config;
            let of_node = services_with_places(config.services_of(&self.local.me.name))?;
            server.checks.follow(of_node);
            let of_node = services_with_places(config.services_of(&self.local.me.name))?;
            self.sizes.follow(config.cluster.hash_key(), of_node);
        }
        Ok(())
    }

    /// Puts the cluster addresses on their interfaces, and announces to the LAN those that this node answers ARP for.
    pub(crate) async fn take_addresses(&mut self) -> Result<()> {
        let taken = self.place_addresses().await?;
        if !taken.is_empty() {
            announcer::announce_all(&self.local.link, &taken);
        }
        Ok(())
    }

    /// Puts the cluster addresses on their interfaces without announcing them, and returns those that are to be
    /// announced. With failover these are only the new ones: for an address that was here already, another node may
    /// be in front.
    pub(crate) async fn place_addresses(&mut self) -> Result<Vec<Ipv4Addr>> {
        let interface = self.local.link.name.clone();
        let failover = self.local.config.failover.as_ref();
        let leaves_alone = failover.is_some_and(|found| found.address == FrontAddress::External);
        let (has_failover, places) = (failover.is_some(), self.held_places());
        let is_hidden = |(_, at): &&(ClusterAddress, String)| *at != interface;
        let hidden = places.iter().filter(is_hidden).count();
        if hidden > 0 || (hidden == places.len() || has_failover) && !leaves_alone {
            // The interface must not answer ARP for an address of another interface, nor send ARP requests from it.
            self.host.set(&Sysctl::arp_ignore(&interface)?, "1")?;
            self.host.set(&Sysctl::arp_announce(&interface)?, "2")?;
        }
        let mut told = Vec::new();
        // The addresses that the LAN hears of come last, when everything else is ready.
        let (hidden, shown): (Vec<_>, Vec<_>) = places.iter().partition(|(_, at)| *at != interface);
        for (address, at) in hidden.into_iter().chain(shown) {
            let is_new = self.host.add_address(at, address.ip()).await?;
            if let IpAddr::V4(address) = address.ip()
                && *at == interface
                && (is_new || !has_failover)
            {
                told.push(address);
            }
        }
        Ok(told)
    }
}
