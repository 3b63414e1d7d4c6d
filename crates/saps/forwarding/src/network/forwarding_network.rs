//! A link between two nodes, and what a network must do to make one.

use std::any::Any;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

/// How long the two ends may take to prove that they know the cluster key.
const PROOF_PATIENCE: Duration = Duration::from_secs(5);

pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A link that is being made. It proves that both ends know the cluster key, independently of other links.
pub(crate) type Handshake = BoxFuture<'static, io::Result<Link>>;

/// A kind of link between nodes: reliable, and authenticated with the cluster key at both ends.
pub(crate) trait ForwardingNetwork: Send + Sync + fmt::Debug {
    /// Makes a link to the I/O server at this address.
    fn connect(&self, to: SocketAddr) -> BoxFuture<'_, io::Result<Link>>;

    /// Accepts links from this point on. Must be called within a tokio runtime.
    fn listen(&self, at: SocketAddr) -> io::Result<Box<dyn Acceptor>>;
}

/// Accepts links at one address.
pub(crate) trait Acceptor: Send + Sync {
    /// Returns the next link that is being made. Cancel safe.
    fn accept(&mut self) -> BoxFuture<'_, io::Result<Handshake>>;

    /// The address that it listens on.
    fn local(&self) -> io::Result<SocketAddr>;
}

/// One link that is up.
pub(crate) struct Link {
    /// The address of the node at the other end.
    pub(crate) peer: SocketAddr,
    /// The link's lanes, at least one.
    pub(crate) lanes: Vec<Lane>,
    /// An object that must live as long as the lanes.
    pub(crate) keep: Option<Box<dyn Any + Send + Sync>>,
}

/// A stream of bytes in each direction, in order.
pub(crate) struct Lane {
    pub(crate) reader: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) writer: Box<dyn AsyncWrite + Send + Unpin>,
}

/// Makes a link, or fails if its ends do not prove in time that they know the cluster key.
pub(super) fn in_time<'a>(
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
