//! Forwarding networks, which carry channels. There are two; a further cluster interconnect would be another file
//! here, with a [`ForwardingNetwork`].
//!
//! | | proves who it is | encrypts | one lost packet holds up |
//! |---|---|---|---|
//! | [`tcp`] | by challenge and response, when the link is made | nothing | all connections of the node, until it is sent again |
//! | [`quic`] | by keys derived from the cluster key (TLS 1.3) | everything | an eighth of them |
//!
//! A program that does not read holds up no other program. The forwarding protocol ensures that, not the network.

mod forwarding_network;
mod keys;
mod proof;
mod quic;
mod tcp;

use std::io;
use std::sync::Arc;

use baton_wire::ClusterKey;

pub(crate) use forwarding_network::{Acceptor, ForwardingNetwork, Handshake, Lane, Link};
pub(crate) use keys::NetworkKeys;

/// The network that carries the channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkKind {
    /// One TCP connection. It is authenticated when it is made and not encrypted: for a network that only machines of
    /// the cluster are on.
    Tcp,
    /// QUIC: encrypted and authenticated.
    Quic,
}

/// Makes the network of this kind, with the current key and the one that was used before it.
pub(crate) fn network(
    kind: NetworkKind,
    key: &ClusterKey,
    previous: Option<&ClusterKey>,
) -> io::Result<Arc<dyn ForwardingNetwork>> {
    let keys = NetworkKeys::new(key, previous);
    Ok(match kind {
        NetworkKind::Tcp => Arc::new(tcp::Tcp::new(keys)),
        NetworkKind::Quic => Arc::new(quic::Quic::new(&keys)?),
    })
}
