//! The client's half of a connection.

use std::collections::HashSet;
use std::net::{SocketAddr, SocketAddrV4};
use std::time::Duration;

use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::sync::watch;

/// Where clients may have been going: every cluster address and port that this node serves.
pub type Services = HashSet<SocketAddrV4>;

/// A client's connection: the client's end, and the cluster's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ends {
    /// The client's address and port.
    pub client: SocketAddrV4,
    /// The cluster address and port that it is connected to.
    pub cluster: SocketAddrV4,
}

impl Ends {
    /// Those of an adopted connection. `None`: it is none to these services, but of somebody on this host who has
    /// connected to the agent's listener itself. To relay that would be to relay to the listener itself, without end.
    pub(crate) fn of(client: &TcpStream, services: &watch::Receiver<Services>) -> Option<Self> {
        let ends = Self::of_any(client)?;
        services.borrow().contains(&ends.cluster).then_some(ends)
    }

    /// The same for a listener at the cluster address, to which nobody else connects.
    pub(crate) fn of_any(client: &TcpStream) -> Option<Self> {
        match (client.peer_addr(), client.local_addr()) {
            (Ok(SocketAddr::V4(client)), Ok(SocketAddr::V4(cluster))) => {
                Some(Self { client, cluster })
            }
            _ => None,
        }
    }
}

/// From now on the connection ends with a RST, whatever has been passed on: when it is dropped, or this process dies. So a
/// part of a response never looks like all of it.
pub(crate) fn end_by_reset(stream: &TcpStream) {
    // Fails only on a socket that is no socket; then there is nothing to end.
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
}

/// From now on the connection ends in order, when all that was written is acknowledged.
pub(crate) fn end_in_order(stream: &TcpStream) {
    // As above.
    let _ = SockRef::from(stream).set_linger(None);
}
