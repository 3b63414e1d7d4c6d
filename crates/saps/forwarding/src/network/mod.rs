//! What carries channels: a forwarding network. Two are there; another cluster interconnect is a file here.
//!
//! | | proves who it is | encrypts | one lost packet holds up |
//! |---|---|---|---|
//! | [`tcp`] | by challenge and response, when the link is made | nothing | all connections of the node, until it is sent again |
//! | [`quic`] | by keys derived from the cluster key (TLS 1.3) | everything | an eighth of them |
//!
//! That a program that does not read holds up nobody else is not the network's business but the forwarding
//! protocol's.

mod keys;
mod proof;
mod quic;
mod tcp;

use std::any::Any;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use baton_streams::quic::DEAD_AFTER;
use baton_wire::ClusterKey;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

pub(crate) use keys::NetworkKeys;

/// Which network carries the channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkKind {
    /// One TCP connection. Authenticated when it is made, not encrypted: for a network that only the cluster's
    /// machines are on.
    Tcp,
    /// QUIC: encrypted and authenticated.
    Quic,
}

/// How long the two ends have to prove who they are.
const PROOF_PATIENCE: Duration = Duration::from_secs(5);

pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Links that are being made: each proves who it is at its own pace.
pub(crate) type Handshake = BoxFuture<'static, io::Result<Link>>;

/// A kind of link between nodes: reliable, and authenticated with the cluster key at both ends.
pub(crate) trait ForwardingNetwork: Send + Sync + fmt::Debug {
    /// Makes a link to the I/O server there.
    fn connect(&self, to: SocketAddr) -> BoxFuture<'_, io::Result<Link>>;

    /// Takes links from now on. Must be called within a tokio runtime.
    fn listen(&self, at: SocketAddr) -> io::Result<Box<dyn Acceptor>>;
}

/// Where links come to.
pub(crate) trait Acceptor: Send + Sync {
    /// The next one. Cancel safe.
    fn accept(&mut self) -> BoxFuture<'_, io::Result<Handshake>>;

    /// Where it listens.
    fn local(&self) -> io::Result<SocketAddr>;
}

/// One link, up.
pub(crate) struct Link {
    /// The node at the other end.
    pub(crate) peer: SocketAddr,
    /// At least one.
    pub(crate) lanes: Vec<Lane>,
    /// What must live as long as the lanes.
    pub(crate) keep: Option<Box<dyn Any + Send + Sync>>,
}

/// Bytes in order, both ways.
pub(crate) struct Lane {
    pub(crate) reader: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) writer: Box<dyn AsyncWrite + Send + Unpin>,
}

/// The network of a kind, under a key and the one that was in use before it.
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

/// A link, if its ends prove in time who they are.
fn in_time<'a>(
    making: impl Future<Output = io::Result<Link>> + Send + 'a,
) -> BoxFuture<'a, io::Result<Link>> {
    Box::pin(async {
        timeout(PROOF_PATIENCE, making).await.unwrap_or_else(|_| {
            Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the other end did not prove in time that it knows the cluster key",
            ))
        })
    })
}
