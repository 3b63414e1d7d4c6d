//! The I/O server: the cluster addresses, and TCP with all clients.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::{Context, Result};
use baton_config::Forwarding;
use baton_net::Host;
use baton_saps::{IoReport, IoServer, IoSettings, PortPolicy};

use super::{network, policy, previous_secret, secret, weights};
use crate::{local_node::LocalNode, network::announcer};

pub(super) struct Io {
    server: IoServer,
}

impl Io {
    /// Takes the cluster addresses first and then accepts channels, because a port can be listened on only once its
    /// address is here.
    pub(super) async fn start(
        local: &LocalNode,
        forwarding: &Forwarding,
        host: &mut Host,
    ) -> Result<Self> {
        let cluster_addresses: Vec<IpAddr> = (forwarding.addresses.iter())
            .map(|address| address.ip())
            .collect();
        for address in &cluster_addresses {
            host.add_address(&local.link.name, *address).await?;
        }
        let told: Vec<Ipv4Addr> = (cluster_addresses.iter())
            .filter_map(|address| match address {
                IpAddr::V4(address) => Some(*address),
                IpAddr::V6(_) => None,
            })
            .collect();
        let at = SocketAddr::from((local.address, forwarding.port.get()));
        let server = IoServer::start(IoSettings {
            node: local.me.name.to_string(),
            listen: at,
            network: network(forwarding),
            key: secret(local)?.clone(),
            previous_key: previous_secret(local).cloned(),
            cluster_addresses,
            buffer: forwarding.buffer.get(),
            policy: policy(forwarding),
            weights: weights(&local.config),
        });
        let server = server.with_context(|| {
            format!("cannot listen for channels at {at}: choose another [forwarding] port")
        })?;
        announcer::announce_all(&local.link, &told);
        Ok(Self { server })
    }

    pub(super) fn set_policy(&self, policy: PortPolicy, weights: BTreeMap<String, u8>) {
        self.server.set_policy(policy, weights);
    }

    pub(super) fn report(&self) -> IoReport {
        self.server.report()
    }
}
