//! The client's side of a connection that the agent has.

use std::collections::HashSet;
use std::io;
use std::net::{SocketAddr, SocketAddrV4};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;

/// A client may take this long to accept the agent's last words, and may pause this long while it sends more that nobody
/// reads.
pub(crate) const LINGERS: Duration = Duration::from_secs(5);

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

/// Reads what nobody wants until the client ends its side (RFC 9112, section 9.6): a socket that is closed with data in it
/// sends a RST, which could destroy what the client has not read yet.
///
/// # Errors
/// The client breaks off, pauses for `LINGERS`, or does not end within `at_most`.
pub(crate) async fn read_away(client: &mut TcpStream, at_most: Duration) -> io::Result<()> {
    // The buffer is small, because very many connections may have one at once.
    let mut nothing = [0; 4096];
    let reading = async {
        while timeout(LINGERS, client.read(&mut nothing)).await?? > 0 {}
        io::Result::Ok(())
    };
    timeout(at_most, reading).await?
}

/// Whether a RST has ended the connection: a socket without a connection has no peer.
pub(crate) fn has_ended(stream: &TcpStream) -> bool {
    stream.peer_addr().is_err()
}
