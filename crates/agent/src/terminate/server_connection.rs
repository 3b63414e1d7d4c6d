//! The connection on which a server gets requests: to the one here, or by another data server's agent to the one there.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};

use tokio::net::{TcpStream, UnixStream};
use tokio_util::either::Either;

use super::Service;
use super::framed::Framed;
use crate::client::Ends;
use crate::server::Server;

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
pub(super) type ServerStream = Either<TcpStream, Framed<UnixStream>>;

/// Connects to a server, which sees the client's address.
///
/// # Errors
/// The server here, or the daemon, cannot be reached. What hinders the other data server is seen by reading.
pub(super) async fn connect(
    service: &Service,
    ends: Ends,
    place: Place,
) -> io::Result<ServerStream> {
    match place {
        Place::Here => {
            let cluster = SocketAddrV4::new(*ends.cluster.ip(), service.server_port);
            let server = Server::Here(service.mark);
            let stream = server.connect(Ends { cluster, ..ends }).await;
            stream.map(Either::Left)
        }
        Place::Other(next) => match &service.cluster {
            Some(cluster) => Ok(Either::Right(cluster.daemon.relay(next, ends).await?)),
            None => Err(io::ErrorKind::NotConnected.into()),
        },
    }
}
