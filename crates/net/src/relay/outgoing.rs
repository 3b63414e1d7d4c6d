//! The connection to the server on this host, in the client's name.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use socket2::{Domain, Socket, Type};
use tokio::net::{TcpSocket, TcpStream};

/// Connects as `client` to the server for `target`.
///
/// First to 127.0.0.1 with the client's own port: that pair is free, because the client's
/// connection itself is between the client and the cluster address. A server that listens on the
/// cluster address alone refuses this; there the client's port is taken by that very connection,
/// and another one is used.
pub(crate) async fn connect(
    client: SocketAddrV4,
    target: SocketAddrV4,
    mark: u32,
) -> io::Result<TcpStream> {
    let loopback = SocketAddrV4::new(Ipv4Addr::LOCALHOST, target.port());
    let any_port = SocketAddrV4::new(*client.ip(), 0);
    match attempt(client, loopback, mark).await {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            attempt(any_port, target, mark).await
        }
        Err(error) if is_taken(&error) => match attempt(any_port, loopback, mark).await {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                attempt(any_port, target, mark).await
            }
            other => other,
        },
        other => other,
    }
}

/// The client has two connections from one port, to two services: both cannot have it here. Or
/// the pair is still in TIME_WAIT.
pub(super) fn is_taken(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable
    )
}

pub(super) async fn attempt(
    source: SocketAddrV4,
    target: SocketAddrV4,
    mark: u32,
) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM.nonblocking(), None)?;
    socket.set_ip_transparent_v4(true)?;
    socket.set_mark(mark)?;
    socket.set_reuse_address(true)?;
    socket.bind(&SocketAddr::V4(source).into())?;
    TcpSocket::from_std_stream(socket.into())
        .connect(target.into())
        .await
}
