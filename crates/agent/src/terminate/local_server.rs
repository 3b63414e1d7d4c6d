//! The server on this host, and the connections to it.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use baton_core::locked::locked;
use nix::unistd::getuid;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::either::Either;

use super::Counters;
use super::settings::ServerAddress;
use crate::client::Ends;
use crate::server::Server;

/// A server whose queue of connections stays full for this long counts as unreachable.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time before the next try while the queue is full: the kernel does not say when there is room again. It doubles, up
/// to a limit.
const AGAIN: Duration = Duration::from_millis(5);
const LONGEST_AGAIN: Duration = Duration::from_millis(160);
/// The log says at most this often that a server cannot be reached.
const SAID_AGAIN: Duration = Duration::from_secs(60);

/// A connection to the server on this host. If it is dropped before it has been shut down, a server at a port sees it
/// break. At a unix socket nothing breaks, so the server sees it end.
pub(super) type LocalStream = Either<TcpStream, UnixStream>;

/// The server of a service on this host.
pub(crate) struct LocalServer {
    service: String,
    address: ServerAddress,
    /// The mark of [`crate::Routing`], which keeps the server's answers on this host.
    mark: u32,
    counters: Arc<Counters>,
    /// When the log said that the server cannot be reached.
    said: Mutex<Option<Instant>>,
}

impl LocalServer {
    /// The server of the service with this name, at this address.
    pub fn new(service: &str, address: ServerAddress, mark: u32, counters: Arc<Counters>) -> Self {
        Self {
            service: service.to_owned(),
            address,
            mark,
            counters,
            said: Mutex::default(),
        }
    }

    /// The address of this client, if the head of each of its requests is to say it.
    pub fn forwarded_for(&self, ends: &Ends) -> Option<Ipv4Addr> {
        self.address.forwarded_for(ends)
    }

    /// Whether the server listens at a port, and not at a unix socket.
    pub fn is_at_port(&self) -> bool {
        matches!(self.address, ServerAddress::Port(_))
    }

    /// Whether a connection to the one can be used for the other.
    pub fn is_same(&self, other: &Self) -> bool {
        self.address == other.address
    }

    /// Connects to the server, which learns the address of the client as its settings say.
    ///
    /// # Errors
    /// The server cannot be reached. The log says so.
    pub async fn connect(&self, ends: Ends) -> io::Result<LocalStream> {
        let (connected, place) = match &self.address {
            ServerAddress::Port(port) => {
                let cluster = SocketAddrV4::new(*ends.cluster.ip(), *port);
                let server = Server::Here(self.mark);
                let stream = server.connect(Ends { cluster, ..ends }).await;
                (stream.map(Either::Left), cluster.to_string())
            }
            ServerAddress::Socket {
                path,
                client_address,
            } => {
                let header = client_address.header(&ends);
                let stream = connect_socket(path, &header).await;
                (stream.map(Either::Right), path.display().to_string())
            }
        };
        connected.inspect_err(|error| self.say(&place, error))
    }

    /// Counts that the server cannot be reached, and says so in the log if it has not done so just now.
    fn say(&self, place: &str, error: &io::Error) {
        self.counters.unreachable.fetch_add(1, Relaxed);
        let mut said = locked(&self.said);
        if said.is_some_and(|before| before.elapsed() < SAID_AGAIN) {
            return;
        }
        *said = Some(Instant::now());
        let remedy = match (error.kind(), &self.address) {
            (io::ErrorKind::PermissionDenied, ServerAddress::Socket { .. }) => format!(
                "let the user of the TLS agent (tls_user, number {}) write to the socket and enter the folders above it",
                getuid()
            ),
            (io::ErrorKind::NotFound, ServerAddress::Socket { .. }) => {
                "start the server, or correct server_socket".to_owned()
            }
            _ => "see whether the server runs and listens there".to_owned(),
        };
        tracing::warn!(
            "service {}: clients get 503, because the agent cannot connect to the server at {place}: {error}; {remedy}",
            self.service
        );
    }
}

/// Connects to a unix socket, and sends what connections to it begin with.
async fn connect_socket(path: &Path, first: &[u8]) -> io::Result<UnixStream> {
    let connecting = async {
        let mut pause = AGAIN;
        loop {
            match UnixStream::connect(path).await {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(pause).await,
                other => return other,
            }
            pause = LONGEST_AGAIN.min(pause * 2);
        }
    };
    let mut stream = timeout(PATIENCE, connecting).await??;
    // A new socket has room for it.
    stream.write_all(first).await?;
    Ok(stream)
}

#[cfg(test)]
mod tests;
