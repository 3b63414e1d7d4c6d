//! The virtual sockets of an application node: its control group, and the agent that serves the programs in it
//! (`baton_virtual_sockets`).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use anyhow::Result;
use baton_config::{Config, Forwarding};
use baton_dataplane::{Pins, app_counter_name};
use baton_virtual_sockets::{Agent, Group, RefusedPort, Settings};
use tokio::task::JoinHandle;
use tracing::error;

use crate::local_node::LocalNode;

/// The running agent of this node's virtual sockets. Dropping this stops the agent. The hooks stay attached as long as
/// their pins exist.
pub struct Sockets {
    agent: Arc<Agent>,
    task: JoinHandle<()>,
}

impl Sockets {
    /// Makes the control group with its hooks, and serves the programs in it. `far` connects and listens at the I/O
    /// server.
    pub fn start(
        local: &LocalNode,
        forwarding: &Forwarding,
        far: baton_saps::Agent,
    ) -> Result<Self> {
        let cluster: Vec<IpAddr> = (forwarding.addresses.iter())
            .map(|address| address.ip())
            .collect();
        let pins = Pins::new(&local.config.local.bpf_dir);
        let agent = Agent::start(Settings {
            group: group(&pins)?,
            pins: Some(pins),
            direct: nodes(&local.config),
            cluster,
        })?;
        let agent = Arc::new(agent);
        let serving = Arc::clone(&agent);
        let task = tokio::spawn(async move {
            if let Err(error) = serving.serve(far).await {
                error!(
                    "the agent of the virtual sockets has ended: {error}; programs on this node get no new connections \
                     until the daemon is restarted"
                );
            }
        });
        Ok(Self { agent, task })
    }

    /// Lets programs reach the nodes of this configuration directly, without the agent.
    pub fn set_direct(&self, config: &Config) -> Result<()> {
        Ok(self.agent.set_direct(&nodes(config))?)
    }

    /// The ports on which programs listen, but the I/O server does not.
    pub fn refused(&self) -> Vec<RefusedPort> {
        self.agent.refused().list()
    }

    /// The hooks' counters and the agent's, by their labels.
    pub fn counters(&self) -> Result<BTreeMap<String, u64>> {
        let hooks = self.agent.maps()?.counters()?;
        let named = (0..).zip(hooks).filter_map(|(index, value)| {
            // Every counter has a name.
            Some((app_counter_name(index)?, value))
        });
        let agent = self.agent.counters();
        let agent = agent
            .all()
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value));
        Ok(named.chain(agent).collect())
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The control group of the node with these pins. Several nodes on one machine have a group each.
pub fn group(pins: &Pins) -> Result<Group> {
    Ok(Group::named_after(pins.dir())?)
}

/// Whether hooks of an earlier daemon are pinned.
pub fn has_pinned_hooks(pins: &Pins) -> bool {
    pins.link("app_connect4").exists()
}

/// Removes the node's control group, or does nothing if there is none.
pub fn remove_group(pins: &Pins) -> Result<()> {
    match group(pins) {
        // Most nodes have no group. Nothing is written for them, because their cgroup file system may be read-only.
        Ok(group) if group.path().exists() => Ok(group.remove()?),
        // Without cgroup v2 there is no group to remove.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// The address and prefix length of each node of the cluster. Programs reach these nodes directly.
fn nodes(config: &Config) -> Vec<(IpAddr, u8)> {
    let addresses = config.nodes.iter().map(|node| node.address.ip());
    addresses
        .map(|address| (address, if address.is_ipv4() { 32 } else { 128 }))
        .collect()
}
