//! Clients' connections: accepted at the cluster addresses, and given to a node that listens, chosen by the policy.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use baton_core::counters::count;
use baton_saps_protocol::wire::{Errno, Families, Way};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::nodes::Listener;
use super::pump;
use super::state::IoState;
use crate::VirtualStream;
use crate::shared::errno;

/// How long a node may take to accept a connection before another node is asked.
const PATIENCE: Duration = Duration::from_secs(3);

/// How much longer a node may take if there is no other node. A slow node is better than none, and a dead one loses
/// its channel before this time is over.
const LAST_PATIENCE: Duration = Duration::from_secs(27);

/// The number of connections that may wait to be accepted here. The kernel allows no more than net.core.somaxconn.
const BACKLOG: i32 = 4096;

/// Listens for a node and returns the port.
///
/// # Errors
/// EADDRNOTAVAIL if the cluster has no address of these IP versions; EADDRINUSE if the node has the port already;
/// otherwise the kernel's error.
pub(super) fn listen(
    io: &Arc<IoState>,
    listener: Listener,
    port: u16,
    families: Families,
) -> Result<u16, Errno> {
    let is_meant = |address: &&IpAddr| match families {
        Families::V4 => address.is_ipv4(),
        Families::V6 => address.is_ipv6(),
        Families::Both => true,
    };
    let addresses = io.settings.cluster_addresses.iter().filter(is_meant);
    let addresses: Vec<IpAddr> = addresses.copied().collect();
    if addresses.is_empty() {
        return Err(Errno::ADDRESS_NOT_AVAILABLE);
    }
    let nodes = &io.nodes;
    let (port, opened) = nodes.listen(listener, port, families, &addresses, open)?;
    for socket in opened {
        tokio::spawn(accept(Arc::clone(io), socket, port));
    }
    Ok(port)
}

/// Opens one listening socket for each address, all on the same port.
fn open(addresses: &[IpAddr], port: u16) -> Result<Vec<Arc<TcpListener>>, Errno> {
    let mut sockets = Vec::new();
    let mut chosen = port;
    for address in addresses {
        let socket = open_one((*address, chosen).into()).map_err(|error| errno(&error))?;
        let local = socket.local_addr().map_err(|error| errno(&error))?;
        chosen = local.port();
        sockets.push(Arc::new(socket));
    }
    Ok(sockets)
}

fn open_one(at: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(at), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    // Freebind lets the address be one that is still being checked (duplicate address detection).
    if at.is_ipv6() {
        socket.set_only_v6(true)?;
        socket.set_freebind_v6(true)?;
    } else {
        socket.set_freebind_v4(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&at.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// Accepts clients' connections until the socket is shut down.
async fn accept(io: Arc<IoState>, socket: Arc<TcpListener>, port: u16) {
    loop {
        match socket.accept().await {
            Ok((client, peer)) => {
                count(&io.counters.accepted);
                tokio::spawn(serve(Arc::clone(&io), client, peer, port));
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return,
            // File descriptors or memory are exhausted, or the client is already gone. Other clients still wait.
            Err(error) => {
                tracing::warn!(port, %error, "a client's connection cannot be accepted");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
}

async fn serve(io: Arc<IoState>, client: TcpStream, peer: SocketAddr, port: u16) {
    let Ok(local) = client.local_addr() else {
        return;
    };
    // The node has already put together what it sends, so that waiting for more bytes gains nothing.
    let _ = client.set_nodelay(true);
    let client = Arc::new(client);
    let mut tried = Vec::new();
    let next = |tried: &[Listener]| (io.nodes).next(port, local.is_ipv6(), peer.ip(), tried);
    let mut chosen = next(&tried);
    while let Some(turn) = chosen {
        tried.push(turn.listener);
        let way = Way::In {
            listener: turn.listener.1,
            peer: peer.into(),
            local: local.into(),
        };
        let socket = Arc::downgrade(&client);
        let making = VirtualStream::make(&turn.shared, way, socket);
        tokio::pin!(making);
        let mut made = timeout(PATIENCE, &mut making).await;
        let other = match made {
            Ok(Ok(_)) => None,
            Ok(Err(_)) | Err(_) => next(&tried),
        };
        if made.is_err() && other.is_none() {
            made = timeout(LAST_PATIENCE, making).await;
        }
        if let Ok(Ok((stream, _))) = made {
            return pump::run(&io.counters, client, stream).await;
        }
        chosen = other;
    }
    count(&io.counters.unserved);
    pump::reset(&client);
}
