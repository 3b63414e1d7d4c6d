//! What the daemon and the task that migrates share, and what they ask of each other.

use std::{
    net::Ipv4Addr,
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use baton_config::Node;
use baton_wire::KeyRing;
use tokio::sync::oneshot;

use super::state::State;
use crate::{local_node::LocalNode, locked::locked, peers::keys};

/// The state that the daemon and the task share.
#[derive(Default)]
pub struct Shared {
    state: Mutex<State>,
}

/// What the task needs to know of the configuration.
#[derive(Clone)]
pub struct Wanted {
    pub keys: KeyRing,
    pub clock_window: Duration,
    /// The other connection servers to which clients' packets for the same addresses may come.
    pub partners: Vec<Ipv4Addr>,
    /// The addresses and names of all nodes.
    pub nodes: Vec<(Ipv4Addr, String)>,
}

/// The daemon's order to the task to begin a migration to another node.
pub struct Order {
    pub to: Ipv4Addr,
    pub name: String,
    /// Whether baton does not move the addresses itself, so that they are moved by other means later.
    pub by_hand: bool,
}

/// The task's request to move the cluster addresses, and the channel for the answer.
pub struct Transfer {
    pub to: Ipv4Addr,
    pub done: oneshot::Sender<Result<(), String>>,
}

impl Shared {
    pub fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
}

impl Wanted {
    pub fn of(local: &LocalNode) -> Self {
        let v4 = |node: &baton_config::Node| node.address.ipv4();
        Self {
            keys: keys::key_ring(&local.config, &local.me),
            clock_window: local.config.cluster.clock_window,
            partners: partners(local).filter_map(v4).collect(),
            nodes: (local.config.nodes.iter())
                .filter_map(|node| Some((v4(node)?, node.name.to_string())))
                .collect(),
        }
    }
}

/// Returns the other connection servers to which clients' packets for this node's cluster addresses may come.
pub fn partners(local: &LocalNode) -> impl Iterator<Item = &Node> {
    let config = &local.config;
    let fronted = local.fronted();
    config.connection_servers().filter(move |node| {
        let shares = |address| config.fronts(node, address);
        node.name != local.me.name && fronted.iter().any(|address| shares(*address))
    })
}
