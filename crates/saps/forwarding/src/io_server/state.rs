//! What the tasks of an I/O server share: its settings, its nodes and its counters.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use baton_saps_protocol::PortPolicy;
use baton_wire::ClusterKey;

use super::nodes::Nodes;
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
