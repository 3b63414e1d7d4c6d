//! For a server in a network namespace of its own, as in a container behind a bridge: no listener of this host
//! is the server's, and the kernel adopts a connection only into a listener of the namespace where the packet
//! came in (`bpf_sk_assign_tcp_reqsk` in net/core/filter.c answers -ENETUNREACH otherwise). So the daemon
//! listens at the cluster address itself, and joins each connection to a second one to the server's own address.
//!
//! The server sees the client's own address, and its port too where that is free:
//!
//! ```text
//!  client:port <--(cluster address:80, adopted)--> relay <--(client:port)--> 172.17.0.2:80
//! ```
//!
//! The server's answers are addressed to the client and come to this host, because it is the container's
//! gateway. There a program on the interface to the container marks those that one of these sockets waits for
//! (`bpf/ds/relay_answer.h`), and the relay's routing rule keeps what is marked on this host. The sockets
//! themselves carry another mark, by which the program knows them and for which there is no rule.

use std::io;
use std::net::{SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use socket2::{Domain, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::outgoing::{attempt, is_taken};
use super::{Counters, Routing, Target, serve};
use crate::netlink::route::{LocalRoute, MarkRule};
use crate::{Error, Host, Result};

/// SO_MARK of the connections to servers in containers: the letters "bats". `MARK_RELAY_SOCKET` of `bpf/abi.h`.
pub const SOCKET_MARK: u32 = 0x6261_7473;

/// A server that does not answer for so long is taken for unreachable, and the client's connection is reset.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many connections may wait to be accepted, if net.core.somaxconn allows so many.
const BACKLOG: i32 = 4096;

/// Has marked packets stay on this host, whatever their destination; each change is journaled.
///
/// # Errors
/// [`Error::System`]. What was done before the error is in the journal.
pub async fn prepare(host: &mut Host, routing: &Routing) -> Result<()> {
    let Routing {
        mark,
        table,
        priority,
    } = *routing;
    host.add_local_route(&LocalRoute { table }).await?;
    let rule = MarkRule {
        mark,
        table,
        priority,
    };
    host.add_rule(&rule).await.map(|_| ())
}

/// A listener at the cluster address in place of a server that is in a container.
#[derive(Debug)]
pub struct ContainerRelay {
    listener: TcpListener,
    server: SocketAddrV4,
    counters: Arc<Counters>,
}

impl ContainerRelay {
    /// Listens where clients go (`service`) and will relay to `server`. The cluster address need not be there
    /// yet. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`Error::System`], for instance if something else listens there.
    pub fn bind(
        service: SocketAddrV4,
        server: SocketAddrV4,
        counters: Arc<Counters>,
    ) -> Result<Self> {
        let listen = || -> io::Result<TcpListener> {
            let socket = Socket::new(Domain::IPV4, Type::STREAM.nonblocking(), None)?;
            socket.set_freebind_v4(true)?;
            socket.set_reuse_address(true)?;
            socket.bind(&SocketAddr::V4(service).into())?;
            socket.listen(BACKLOG)?;
            TcpListener::from_std(socket.into())
        };
        let listener = listen().map_err(Error::system(format!(
            "listen at {service} for the relay to {server}"
        )))?;
        Ok(Self {
            listener,
            server,
            counters,
        })
    }

    /// Relays until dropped, and then ends every connection.
    pub async fn run(self) {
        let mut connections = JoinSet::new();
        loop {
            match self.listener.accept().await {
                Ok((client, _)) => {
                    self.counters.accepted.fetch_add(1, Ordering::Relaxed);
                    let target = Some(Target::Container(self.server));
                    connections.spawn(serve(client, target, Arc::clone(&self.counters)));
                }
                // No file descriptors or memory are left, or the client has gone: the others wait.
                Err(error) => {
                    tracing::warn!(%error, "the relay to a container cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            }
            while connections.try_join_next().is_some() {}
        }
    }
}

/// Connects as `client` to the server in the container.
pub(super) async fn connect(client: SocketAddrV4, server: SocketAddrV4) -> io::Result<TcpStream> {
    let any_port = SocketAddrV4::new(*client.ip(), 0);
    let connecting = async {
        match attempt(client, server, SOCKET_MARK).await {
            Err(error) if is_taken(&error) => attempt(any_port, server, SOCKET_MARK).await,
            other => other,
        }
    };
    tokio::time::timeout(PATIENCE, connecting).await?
}
