//! The relay for servers whose listeners are MPTCP. It runs only if this host has MPTCP.

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
    /// The port on 127.0.0.1 at which the programs find the relay.
    pub port: u16,
    /// The relay's counters.
    pub counters: Arc<Counters>,
    services: watch::Sender<Services>,
}

impl Running {
    /// Starts the relay; `None` if listeners cannot be MPTCP on this host.
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

    /// Sets the addresses of the services to which the relay takes connections.
    pub fn serve(&self, services: impl IntoIterator<Item = SocketAddrV4>) {
        self.services.send_replace(services.into_iter().collect());
    }
}
