//! Connections that programs make, from the cluster address.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use baton_core::counters::count;
use baton_saps_protocol::ConnectionId;
use baton_saps_protocol::wire::{Errno, SocketOptions};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::IpBindAddressNoPort;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpSocket, TcpStream};

use super::pump;
use super::state::IoState;
use crate::shared::{Shared, errno};
use crate::{VirtualStream, options};

/// Connects to `to`, and answers the node.
pub(super) async fn connect(
    io: Arc<IoState>,
    shared: Arc<Shared>,
    id: ConnectionId,
    to: SocketAddr,
    options: SocketOptions,
) {
    let refuse = |errno| {
        count(&io.counters.not_connected);
        shared.with(|state| state.channel.refuse(id, errno));
    };
    let sources = io.settings.cluster_addresses.iter();
    let source = sources
        .copied()
        .find(|source| source.is_ipv4() == to.is_ipv4());
    let Some(source) = source else {
        return refuse(Errno::ADDRESS_NOT_AVAILABLE);
    };
    // The services on this host's loopback are not for a node, which has a loopback of its own.
    let is_own = to.ip().to_canonical().is_loopback() || to.ip().is_unspecified();
    if is_own && !source.is_loopback() {
        return refuse(Errno::NETWORK_UNREACHABLE);
    }
    let connected = open(source, to, &options).await;
    let (socket, local) = match connected {
        Ok(connected) => connected,
        Err(error) => return refuse(errno(&error)),
    };
    let socket = Arc::new(socket);
    let stream = VirtualStream::accept(&shared, id, local.into(), Arc::downgrade(&socket));
    let Some(stream) = stream else {
        return pump::reset(&socket);
    };
    count(&io.counters.connected);
    // This runs as a task of its own: the present task ends with the node's channel, but the connection must still be
    // reset then.
    tokio::spawn(async move { pump::run(&io.counters, socket, stream).await });
}

async fn open(
    source: IpAddr,
    to: SocketAddr,
    options: &SocketOptions,
) -> io::Result<(TcpStream, SocketAddr)> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    options::set_before(&socket, options, Some(to));
    socket.set_tcp_nodelay(options.nodelay.unwrap_or(true))?;
    // connect() chooses the port, because it knows the other end: so every other end can have all the ports.
    setsockopt(&socket, IpBindAddressNoPort, &true)?;
    socket.bind(&SocketAddr::new(source, 0).into())?;
    let socket = TcpSocket::from_std_stream(socket.into());
    let stream = socket.connect(to).await?;
    let local = stream.local_addr()?;
    Ok((stream, local))
}
