//! The connection on which a server gets requests: to the one here, or by another data server's agent to the one there.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

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

/// A connection to a server. It breaks if it is dropped before it has been shut down.
#[derive(Debug)]
pub(super) enum ServerStream {
    Here(TcpStream),
    Other(Framed<UnixStream>),
}

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
            stream.map(ServerStream::Here)
        }
        Place::Other(next) => match &service.judge {
            Some(daemon) => Ok(ServerStream::Other(daemon.relay(next, ends).await?)),
            None => Err(io::ErrorKind::NotConnected.into()),
        },
    }
}

impl AsyncRead for ServerStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Here(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Other(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for ServerStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut *self {
            Self::Here(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Other(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Here(stream) => Pin::new(stream).poll_flush(cx),
            Self::Other(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Here(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Other(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
