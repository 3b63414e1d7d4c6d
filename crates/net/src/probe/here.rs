//! Finds out whether the other end of a connection is a socket of this network namespace. An address translation, such
//! as the one that Docker sets up for a published port, can lead a connection elsewhere, and neither end sees it.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::sleep;

use super::Reason;
use crate::Connections;

/// How often to look: the client's end is established a moment before the server's end.
const ATTEMPTS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(5);

pub(super) async fn check(stream: &TcpStream, target: SocketAddr) -> Result<(), Reason> {
    // Cluster addresses are IPv4.
    let own = stream.local_addr().map_err(Reason::Connection)?;
    let (SocketAddr::V4(client), SocketAddr::V4(server)) = (own, target) else {
        return Ok(());
    };
    for _ in 0..ATTEMPTS {
        match Connections::ends_here(client, server) {
            Ok(false) => sleep(PAUSE).await,
            Ok(true) => return Ok(()),
            // If the kernel cannot be asked, the server gets the benefit of the doubt.
            Err(error) => {
                tracing::debug!("{error}");
                return Ok(());
            }
        }
    }
    // A server at its limit may have accepted and reset the connection: then neither end is there anymore.
    match stream.take_error() {
        Ok(Some(error)) | Err(error) => Err(Reason::Connection(error)),
        Ok(None) => Err(Reason::Elsewhere(target)),
    }
}
