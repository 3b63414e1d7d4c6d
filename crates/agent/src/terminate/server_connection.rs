//! The connection on which a server gets requests: to the one here, or by another data server's agent to the one there.

use std::io;
use std::net::Ipv4Addr;

use tokio::net::UnixStream;
use tokio_util::either::Either;

use super::Service;
use super::framed::Framed;
use super::local_server::{LocalServer, LocalStream};
use crate::client::Ends;

/// Which server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Place {
    /// The one beside this agent.
    #[default]
    Here,
    /// The one at this data server.
    Other(Ipv4Addr),
}

/// A connection to the server here, or to another one. It breaks if it is dropped before it has been shut down.
pub(super) type ServerStream = Either<LocalStream, Framed<UnixStream>>;

/// Connects to a server, to the `local` one or by the agent of another data server. It learns the client's address.
///
/// # Errors
/// The server here, or the daemon, cannot be reached. What hinders the other data server is seen by reading.
pub(super) async fn connect(
    service: &Service,
    local: &LocalServer,
    ends: Ends,
    place: Place,
) -> io::Result<ServerStream> {
    match place {
        Place::Here => local.connect(ends).await.map(Either::Left),
        Place::Other(next) => match &service.cluster {
            Some(cluster) => Ok(Either::Right(cluster.daemon.relay(next, ends).await?)),
            None => Err(io::ErrorKind::NotConnected.into()),
        },
    }
}
