//! Has relays, and the interfaces that lead to containers, follow the configuration and the containers.

use std::{
    collections::{BTreeSet, HashMap},
    net::SocketAddrV4,
};

use anyhow::Result;
use baton_agent::Routing;
use baton_config::Service;
use tracing::{debug, warn};

use crate::{daemon::Daemon, places::services_with_places};

impl Daemon {
    /// Starts and ends relays, so that exactly those run that the configuration asks for.
    pub(crate) async fn relay_to_containers(&mut self) -> Result<()> {
        let name = &self.local.me.name;
        let server_of = |(at, service): (SocketAddrV4, &Service)| {
            Some((at, service.relay_to.of(name.as_str())?))
        };
        let of_node = services_with_places(self.local.config.services_of(name))?;
        let wanted: HashMap<_, _> = (of_node.into_iter().chain(self.deconfigured.services()))
            .filter_map(server_of)
            .collect();
        if !wanted.is_empty() {
            Routing::default().keep_marked(&mut self.host).await?;
        }
        if let Some(server) = &mut self.data_server {
            server.containers.follow(&wanted)?;
        }
        self.find_containers().await;
        Ok(())
    }

    /// Looks by which interfaces the containers are reached now. A container's network may start after this node, end,
    /// and start again as another interface.
    pub(crate) async fn find_containers(&mut self) {
        let Some(server) = &mut self.data_server else {
            return;
        };
        let mut interfaces = BTreeSet::new();
        for running in server.containers.running.values() {
            let ip = *running.server.ip();
            match self.local.netlink.interface_to(ip.into()).await {
                Ok(index) => interfaces.extend(index),
                Err(error) => debug!("{error}"),
            }
        }
        if interfaces == server.containers.interfaces {
            return;
        }
        match self.dataplane.keep_relay_answers(&interfaces) {
            Ok(()) => server.containers.interfaces = interfaces,
            Err(error) => warn!("cannot bring the answers of containers to the relay: {error}"),
        }
    }
}
