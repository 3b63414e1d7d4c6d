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
        let io_server = (local.config.io_server()).context("no node has the role \"io\"")?;
        let io_server = SocketAddr::from((io_server.address.ip(), forwarding.port.get()));
        let agent = Agent::start(AgentSettings {
            node: local.me.name.to_string(),
            io_server,
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
