//! What the tasks of an I/O server share: its settings, its nodes and its counters.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use baton_saps_protocol::PortPolicy;
use baton_saps_protocol::wire::TakenPort;
use baton_wire::ClusterKey;

use super::nodes::Nodes;
use super::taken;
use crate::NetworkKind;

/// The settings of an I/O server.
#[derive(Clone, Debug)]
pub struct IoSettings {
    /// The name of this node, as in `baton.toml`.
    pub node: String,
    /// The address that application nodes connect to: the node's own address, with the port of `[forwarding]`. Port 0
    /// takes any port.
    pub listen: SocketAddr,
    /// The network that carries the channels.
    pub network: NetworkKind,
    /// The cluster's secret; both ends prove that they know it.
    pub key: ClusterKey,
    /// The secret before it, which is accepted as well while keys are being rotated.
    pub previous_key: Option<ClusterKey>,
    /// The cluster addresses, which this host has. Programs connect from the first of each IP version.
    pub cluster_addresses: Vec<IpAddr>,
    /// B_r: how many bytes of a connection from an application node are buffered here for its client.
    pub buffer: u32,
    /// How one of several nodes that listen on a port is chosen for a client's connection.
    pub policy: PortPolicy,
    /// The nodes' weights, by name. A node without an entry has weight 1.
    pub weights: BTreeMap<String, u8>,
}

#[derive(Debug)]
pub(super) struct IoState {
    pub(super) settings: IoSettings,
    pub(super) nodes: Nodes,
    /// The code that sees an event counts it.
    pub(super) counters: Arc<IoCounters>,
}

baton_core::shared_counters! {
    /// Counters of what became of clients' connections, and of those that programs made, since the start.
    pub struct IoCounters("io_") {
        /// Connections accepted from clients.
        accepted,
        /// Those of `accepted` that were reset because no node took them.
        unserved,
        /// Connections made for programs.
        connected,
        /// Connections that could not be made for programs.
        not_connected,
        /// Connections that broke at the client, or on the way to it.
        reset_by_client,
        /// Connections that were reset because the program, its node or the channel to it broke.
        reset_by_node,
        /// Connections that ended regularly.
        finished,
        /// Requests of nodes to listen on a port that could not be listened on.
        listens_refused,
        /// Channels refused because the node could not prove that it knows the cluster key, or did not try.
        channels_refused,
    }
}

impl IoState {
    /// Tells the nodes which ports other programs of this host have, if the list has changed.
    pub(super) fn look_at_taken(&self) {
        let before = self.nodes.sockets();
        let listeners = match baton_net::listeners::listeners() {
            Ok(listeners) => listeners,
            // Without the list, a node learns that a port is taken when it asks for it.
            Err(error) => {
                return tracing::debug!(%error, "cannot list the listening sockets of this host");
            }
        };
        let addresses = &self.settings.cluster_addresses;
        let after = self.nodes.sockets();
        // A socket of ours that was opened or closed meanwhile must not count as another program's.
        let is_ours = |address| before.contains(&address) || after.contains(&address);
        let taken = taken::taken(&listeners, addresses, is_ours);
        for TakenPort { port, families } in self.nodes.set_taken(taken) {
            tracing::info!(
                port,
                ?families,
                "another program on this host uses this port: programs on application nodes cannot listen on it"
            );
        }
    }
}
