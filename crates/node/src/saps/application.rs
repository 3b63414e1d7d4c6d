//! An application node's end of the channel to the I/O server. The node's programs get their sockets from
//! `saps::programs`.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use baton_config::Forwarding;
use baton_saps::{Agent, AgentSettings};

use super::{network, previous_secret, secret};
use crate::local_node::LocalNode;
use crate::saps::programs::Sockets;

pub(super) struct Application {
    pub(super) agent: Agent,
    pub(super) sockets: Sockets,
}

impl Application {
    pub(super) fn start(local: &LocalNode, forwarding: &Forwarding) -> Result<Self> {
        let io_servers = (local.config.io_server().into_iter())
            .map(|node| SocketAddr::from((node.address.ip(), forwarding.port.get())))
            .collect();
        let agent = Agent::start(AgentSettings {
            node: local.me.name.to_string(),
            io_servers,
            network: network(forwarding),
            key: secret(local)?.clone(),
            previous_key: previous_secret(local).cloned(),
            buffer: forwarding.buffer.get(),
        });
        let agent = agent.context("cannot begin the channel to the I/O server")?;
        let sockets = Sockets::start(local, forwarding, agent.clone())?;
        Ok(Self { agent, sockets })
    }
}
