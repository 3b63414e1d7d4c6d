//! The client's side of a connection that the agent has.

use std::collections::HashSet;
use std::net::{SocketAddr, SocketAddrV4};
use std::time::Duration;

use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::sync::watch;

/// The destinations that clients may have: every cluster address and port that this node serves.
pub type Services = HashSet<SocketAddrV4>;

/// The two ends of a client's connection: the client's, and the cluster's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ends {
    /// The client's address and port.
    pub client: SocketAddrV4,
    /// The cluster address and port that it is connected to.
    pub cluster: SocketAddrV4,
}

impl Ends {
    /// The ends of an adopted connection. `None`: the connection is to none of these services, because somebody on this
    /// host has connected to the agent's listener itself. Relaying it would relay to the listener itself, without end.
    pub(crate) fn of(client: &TcpStream, services: &watch::Receiver<Services>) -> Option<Self> {
        let ends = Self::of_any(client)?;
        services.borrow().contains(&ends.cluster).then_some(ends)
    }

    /// The ends of a connection at a listener that has the cluster address. Nobody but clients connects to such a
    /// listener, so every IPv4 connection there is a client's.
    pub(crate) fn of_any(client: &TcpStream) -> Option<Self> {
        match (client.peer_addr(), client.local_addr()) {
            (Ok(SocketAddr::V4(client)), Ok(SocketAddr::V4(cluster))) => {
                Some(Self { client, cluster })
            }
            _ => None,
        }
    }
}

/// Makes the connection end with a RST when it is dropped or this process dies, whatever has been passed on. So a part
/// of a response never looks like all of it.
pub(crate) fn end_by_reset(stream: &TcpStream) {
    // This fails only if the descriptor is no socket; then there is nothing to end.
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
}

/// Makes the connection end in order, when all that was written is acknowledged.
pub(crate) fn end_in_order(stream: &TcpStream) {
    // This fails only if the descriptor is no socket, as in `end_by_reset`.
    let _ = SockRef::from(stream).set_linger(None);
}

/// Whether a RST has ended the connection: a socket without a connection has no peer.
pub(crate) fn has_ended(stream: &TcpStream) -> bool {
    stream.peer_addr().is_err()
}
