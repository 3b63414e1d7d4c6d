//! Makes the second connection, to the local server, in the client's name.

use std::net::{SocketAddr, SocketAddrV4};
use std::ops::Range;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::time::Duration;
use std::{io, iter};

use socket2::{Domain, Socket, Type};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::client::{Ends, end_by_reset};

/// SO_MARK of the connections to servers in containers: the letters "bats". It must equal `MARK_RELAY_SOCKET` of
/// `bpf/abi/settings.h`.
pub const SOCKET_MARK: u32 = 0x6261_7473;

/// A server that does not answer for this long counts as unreachable, and the client's connection is reset.
const PATIENCE: Duration = Duration::from_secs(10);

/// Source ports for connections to the cluster address. Such a connection has the same ends as a client's connection
/// from the same port, and a client that finds one of ours there would wait forever. No client begins a connection from
/// a port this low.
const LOW: Range<u16> = 512..1024;
/// This many of the low ports are tried. If all of these are taken, any other port will do.
const TRIES: usize = 16;

/// The place of a connection's server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Server {
    /// The server is on this host, where the client has connected to. The number is the mark of [`crate::Routing`].
    Here(u32),
    /// The server is in another network namespace, at an address of its own.
    Container(SocketAddrV4),
}

impl Server {
    /// Connects to the server with this client's address. On this host the destination is always the cluster address,
    /// because what listens on 127.0.0.1 alone is not for clients.
    ///
    /// # Errors
    /// Nobody listens there, or the server does not answer.
    pub async fn connect(self, ends: Ends) -> io::Result<TcpStream> {
        let any_port = SocketAddrV4::new(*ends.client.ip(), 0);
        let connecting = async {
            match self {
                // The client's own port is taken by the client's own connection.
                Self::Here(mark) => {
                    for port in low_ports().take(TRIES) {
                        let from = SocketAddrV4::new(*ends.client.ip(), port);
                        match attempt(from, ends.cluster, mark).await {
                            Err(error) if is_taken(&error) => (),
                            other => return other,
                        }
                    }
                    attempt(any_port, ends.cluster, mark).await
                }
                Self::Container(at) => match attempt(ends.client, at, SOCKET_MARK).await {
                    Err(error) if is_taken(&error) => attempt(any_port, at, SOCKET_MARK).await,
                    other => other,
                },
            }
        };
        let server = timeout(PATIENCE, connecting).await??;
        end_by_reset(&server);
        // Data that is written here has waited for acknowledgements already, on the way to this host.
        server.set_nodelay(true)?;
        Ok(server)
    }
}

/// Whether the connection cannot be made from this source port. The client may have two connections from one port, to
/// two services, and both cannot have it here. Or the pair is still in TIME_WAIT, or this process may not use so low a
/// port.
fn is_taken(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::AddrInUse
            | io::ErrorKind::AddrNotAvailable
            | io::ErrorKind::PermissionDenied
    )
}

/// Returns the low ports in turn, because the pair of the connection that ended last is in TIME_WAIT.
fn low_ports() -> impl Iterator<Item = u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    iter::repeat_with(|| LOW.start + NEXT.fetch_add(1, Relaxed) % (LOW.end - LOW.start))
}

async fn attempt(source: SocketAddrV4, target: SocketAddrV4, mark: u32) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM.nonblocking(), None)?;
    socket.set_ip_transparent_v4(true)?;
    socket.set_mark(mark)?;
    socket.set_reuse_address(true)?;
    socket.bind(&SocketAddr::V4(source).into())?;
    TcpSocket::from_std_stream(socket.into())
        .connect(target.into())
        .await
}
