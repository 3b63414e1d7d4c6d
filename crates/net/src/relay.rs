//! For servers whose listener is MPTCP, as Go programs make them by default: the kernel builds a
//! socket from a cookie only for a plain TCP listener (`bpf_sk_assign_tcp_reqsk` in
//! net/core/filter.c answers -EINVAL for MPTCP). Such connections are adopted into a plain
//! listener of ours, and each is joined to a second connection to the server on this host.
//!
//! The server sees the client's own address, and its port too where that is possible:
//!
//! ```text
//!  client:port <--(cluster address:80, adopted)--> relay <--(client:port, on lo)--> 127.0.0.1:80
//! ```
//!
//! The second connection is made from an address that is not this host's (IP_TRANSPARENT), and
//! the server's answers to that address must not leave the host: the connection carries a mark,
//! what the server side sends on it inherits the mark, and a routing table for the mark declares
//! every address local. [`prepare`] sets that up.

mod container;
mod outgoing;

pub use container::{ContainerRelay, SOCKET_MARK, prepare as prepare_for_containers};
pub(crate) use outgoing::connect as connect_as;

use std::collections::HashSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::netlink::route::{LocalRoute, MarkRule};
use crate::{Error, Host, Result, Sysctl};

/// The mark and the routing table that keep the server's answers on this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routing {
    /// SO_MARK of the connections to the server.
    pub mark: u32,
    /// A routing table that nobody else uses.
    pub table: u32,
    /// Of the rule, before the main table's 32766.
    pub priority: u32,
}

/// Numbers that nobody else is likely to have: the letters "batr", and 253 as in the protocol.
impl Default for Routing {
    fn default() -> Self {
        Self {
            mark: 0x6261_7472,
            table: 0x6261_7472,
            priority: 253,
        }
    }
}

/// Sets the host up for relaying; each change is journaled.
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
    host.add_rule(&MarkRule {
        mark,
        table,
        priority,
    })
    .await?;
    host.set(&Sysctl::tcp_fwmark_accept(), "1")?;
    // Where nobody listens, the refusal must come back here instead of going to the client.
    host.set(&Sysctl::fwmark_reflect(), "1")
}

/// Where clients may have been going: every cluster address and port that this node serves.
pub type Services = HashSet<SocketAddrV4>;

/// What a relay has done, for the metrics.
#[derive(Debug, Default)]
pub struct Counters {
    /// Connections accepted.
    pub accepted: AtomicU64,
    /// Of these, not to a service: somebody on this host connected to the listener itself. Ended.
    pub foreign: AtomicU64,
    /// Of these, the server could not be connected to, or the connection broke. Reset.
    pub failed: AtomicU64,
    /// Of these, came to a regular end in both directions.
    pub finished: AtomicU64,
}

/// A listener for adopted connections.
#[derive(Debug)]
pub struct Relay {
    listener: TcpListener,
    port: u16,
    mark: u32,
    services: watch::Receiver<Services>,
    counters: Arc<Counters>,
}

impl Relay {
    /// Listens on 127.0.0.1, at a port of the kernel's choice. Must be called within a tokio
    /// runtime.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn bind(routing: &Routing, services: watch::Receiver<Services>) -> Result<Self> {
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let listener = std::net::TcpListener::bind(address);
        let listener = listener.map_err(Error::system("listen on 127.0.0.1 for the relay"))?;
        Self::on(listener, routing, services)
    }

    /// Uses a listener that exists. It must be plain TCP.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn on(
        listener: std::net::TcpListener,
        routing: &Routing,
        services: watch::Receiver<Services>,
    ) -> Result<Self> {
        let adopt = || -> io::Result<(TcpListener, u16)> {
            listener.set_nonblocking(true)?;
            let listener = TcpListener::from_std(listener)?;
            let port = listener.local_addr()?.port();
            Ok((listener, port))
        };
        let (listener, port) = adopt().map_err(Error::system("use the relay's listener"))?;
        Ok(Self {
            listener,
            port,
            mark: routing.mark,
            services,
            counters: Arc::default(),
        })
    }

    /// The port it listens on, for `settings.relay_port` of the data server program.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What it has done; stays readable while it runs.
    pub fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.counters)
    }

    /// Relays until dropped, and then ends every connection.
    pub async fn run(self) {
        let mut connections = JoinSet::new();
        loop {
            match self.listener.accept().await {
                Ok((client, _)) => {
                    self.counters.accepted.fetch_add(1, Ordering::Relaxed);
                    let counters = Arc::clone(&self.counters);
                    let target = self.target(&client);
                    let target = target.map(|at| Target::Here(at, self.mark));
                    connections.spawn(serve(client, target, counters));
                }
                // Out of file descriptors or memory, or the client is gone again: others wait.
                Err(error) => {
                    tracing::warn!(%error, "the relay cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            }
            while connections.try_join_next().is_some() {}
        }
    }

    /// The service that the client connected to. Checked, because a connection to the listener
    /// itself would be relayed to the listener itself, and so on without end.
    fn target(&self, client: &TcpStream) -> Option<SocketAddrV4> {
        match client.local_addr() {
            Ok(SocketAddr::V4(local)) => self.services.borrow().get(&local).copied(),
            _ => None,
        }
    }
}

/// Bytes buffered in each direction of a connection.
const BUFFER: usize = 64 * 1024;

/// Where a connection's server is.
#[derive(Clone, Copy, Debug)]
enum Target {
    /// On this host: what clients connect to, and the mark of [`Routing`].
    Here(SocketAddrV4, u32),
    /// In another network namespace, at an address of its own.
    Container(SocketAddrV4),
}

async fn serve(mut client: TcpStream, target: Option<Target>, counters: Arc<Counters>) {
    let Some(target) = target else {
        counters.foreign.fetch_add(1, Ordering::Relaxed);
        return;
    };
    match relay(&mut client, target).await {
        Ok(()) => counters.finished.fetch_add(1, Ordering::Relaxed),
        Err(error) => {
            tracing::debug!(?target, %error, "a relayed connection failed");
            reset(&client);
            counters.failed.fetch_add(1, Ordering::Relaxed)
        }
    };
}

async fn relay(client: &mut TcpStream, target: Target) -> io::Result<()> {
    let SocketAddr::V4(peer) = client.peer_addr()? else {
        return Err(io::Error::other("the client is not IPv4"));
    };
    let mut server = match target {
        Target::Here(at, mark) => outgoing::connect(peer, at, mark).await?,
        Target::Container(at) => container::connect(peer, at).await?,
    };
    // Neither side's small writes may wait here for an acknowledgement.
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let copied = copy_bidirectional_with_sizes(client, &mut server, BUFFER, BUFFER).await;
    if copied.is_err() {
        reset(&server);
    }
    copied.map(|_| ())
}

/// Makes the end of the connection a RST: its other half broke, and an orderly end would pass a
/// part for the whole.
pub(crate) fn reset(stream: &TcpStream) {
    // Fails only on a socket that is no socket; then there is nothing to end.
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
}
