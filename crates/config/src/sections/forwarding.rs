//! `[forwarding]`: one I/O server has the cluster addresses and their TCP; programs on application nodes have
//! virtual sockets.

use std::num::{NonZeroU16, NonZeroU32};
use std::ops::RangeInclusive;

use toml::Spanned;

use crate::reading::problem::Problem;
use crate::reading::report::Report;
use crate::reading::schema::keys;
use crate::reading::value::{list, text, value};
use crate::values::address::ClusterAddress;
use crate::values::number::number;
use crate::values::size::size;
use crate::values::words::words;

/// The settings that the I/O server and the application nodes have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forwarding {
    /// The transport of the channels.
    pub network: ForwardingNetwork,
    /// The port at the I/O server's own address where it accepts channels.
    pub port: NonZeroU16,
    /// The cluster addresses of the I/O server: at least one, each once. Programs connect from the first address of
    /// each IP version.
    pub addresses: Vec<ClusterAddress>,
    /// The bytes of a connection's receive buffer at either end (B_r), 4 KiB to 16 MiB.
    pub buffer: NonZeroU32,
    /// How one of several nodes that listen on a port is chosen for a client's connection.
    pub policy: ForwardingPolicy,
}

words! {
    /// How one of several application nodes is chosen. A node's weight counts under all policies but round-robin, and a
    /// weight of 0 under all.
    pub enum ForwardingPolicy "policy" {
        /// The nodes are chosen in turn.
        RoundRobin = "round-robin",
        /// The nodes are chosen in turn, each as often as its weight says.
        Weighted = "weighted",
        /// The node is chosen that has the fewest open connections of the port in relation to its weight.
        LeastLoaded = "least-loaded",
        /// The node is chosen by the client's address, with a Maglev table.
        Client = "client",
    }
}

words! {
    /// The transport of channels between an I/O server and application nodes.
    pub enum ForwardingNetwork "network =" {
        /// One TCP connection for each node: authenticated, not encrypted.
        Tcp = "tcp",
        /// QUIC: authenticated and encrypted.
        Quic = "quic",
    }
}

keys! {
    /// This section makes the other kind of cluster (SAPS): one I/O server has the cluster addresses and the TCP of all
    /// clients, and unchanged programs on application nodes have virtual sockets (`baton app`). Such a cluster has no
    /// services: a port on which a program listens is a port of the cluster addresses. Where programs of several nodes
    /// listen on one port, they get its connections in turn. A reload can change `policy`, weights and nodes. Any other
    /// change, also of keys, needs a restart of the I/O server and the application nodes.
    Keys "[forwarding]", lacks "[forwarding] has no" {
        /// The cluster addresses, which clients use. Programs connect from the first address of each IP version.
        addresses: Vec<Spanned<ClusterAddress>> = list(text),
            required "[\"192.0.2.100\"], what clients know the cluster by", example ["192.0.2.101", "2001:db8::101"];
        /// What carries the connections between the I/O server and the application nodes:
        ///   "tcp"    one TCP connection for each node. Both ends prove that they know the key, but the data is neither
        ///            encrypted nor protected, so the network must be the cluster's own
        ///   "quic"   QUIC, encrypted
        network: ForwardingNetwork = text, default "tcp";
        /// The TCP or UDP port at which the I/O server takes them, at its own address.
        port: NonZeroU16 = number(1..=u16::MAX), default 7727;
        /// How much of a connection is buffered for a program or a client that does not read, at each end, 4 KiB to
        /// 16 MiB.
        buffer: NonZeroU32 = value(buffer), default "128KiB";
        /// Which of several application nodes that listen on a port gets a client's connection: "round-robin", each in
        /// turn; "weighted", each in turn, as often as its weight says; "least-loaded", the node with the fewest open
        /// connections of the port for its weight; or "client", chosen by the client's address. Except with
        /// "round-robin", a node of weight 0 gets none.
        policy: ForwardingPolicy = text, default "round-robin", example "least-loaded";
    }
}

impl Keys {
    /// Reports an empty list of addresses.
    pub(crate) fn check(&self, report: &mut Report<'_>) {
        if let Some(none) = self
            .addresses
            .given()
            .filter(|list| list.get_ref().is_empty())
        {
            report.error(
                none.span(),
                "the I/O server has no cluster address",
                "write addresses = [\"192.0.2.100\"], what clients know the cluster by",
            );
        }
    }

    /// The section, if all of it could be read.
    pub(crate) fn finish(self) -> Option<Forwarding> {
        let addresses = self.addresses.value()?.into_iter();
        Some(Forwarding {
            network: self.network.value()?,
            port: self.port.value()?,
            addresses: addresses.map(Spanned::into_inner).collect(),
            buffer: self.buffer.value()?,
            policy: self.policy.value()?,
        })
    }
}

/// The smallest and the largest buffer in bytes.
const BUFFER: RangeInclusive<u64> = 4 << 10..=16 << 20;

fn buffer(key: &str, text: String) -> Result<NonZeroU32, Problem> {
    let bytes = size(key, text.clone())?;
    let bytes = u32::try_from(bytes)
        .ok()
        .filter(|_| BUFFER.contains(&bytes));
    bytes.and_then(NonZeroU32::new).ok_or_else(|| {
        Problem::new(
            format!("buffer = \"{}\" is out of range", text.escape_debug()),
            "choose from \"4KiB\" to \"16MiB\"; each connection may fill one at either end",
        )
    })
}
