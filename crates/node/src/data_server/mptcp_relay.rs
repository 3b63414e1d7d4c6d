//! The relay for servers whose listeners are MPTCP, where this host has MPTCP at all.

use std::{net::SocketAddrV4, sync::Arc};

use anyhow::Result;
use baton_agent::{
    Routing, Services,
    relay::{Counters, Relay},
};
use baton_net::{Host, Sysctl};
use tokio::sync::watch;
use tracing::info;

/// A relay that runs.
pub struct Running {
    /// Where the programs find it, on 127.0.0.1.
    pub port: u16,
    /// What it has done.
    pub counters: Arc<Counters>,
    services: watch::Sender<Services>,
}

impl Running {
    /// Starts it, if listeners can be MPTCP on this host.
    pub async fn start(host: &mut Host) -> Result<Option<Self>> {
        if Sysctl::mptcp_enabled().read().ok().as_deref() != Some("1") {
            return Ok(None);
        }
        let routing = Routing::default();
        routing.prepare(host).await?;
        let (services, watch) = watch::channel(Services::default());
        let relay = Relay::bind(&routing, watch)?;
        let (port, counters) = (relay.port(), relay.counters());
        tokio::spawn(relay.run());
        info!(port, "relaying for servers that listen with MPTCP");
        Ok(Some(Self {
            port,
            counters,
            services,
        }))
    }

    /// Where clients may be going.
    pub fn serve(&self, services: impl IntoIterator<Item = SocketAddrV4>) {
        self.services.send_replace(services.into_iter().collect());
    }
}
