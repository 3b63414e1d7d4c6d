//! A port that the I/O server listens on for a program of this node.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use baton_saps_protocol::wire::Errno;
use tokio::sync::mpsc;

use crate::VirtualStream;
use crate::agent::Inner;
use crate::shared::error;

/// Why an I/O server does not listen. [`ListenError::errno`] is the error that listen(2) or bind(2) would have
/// reported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// Another program of this node, or one of the I/O server's host, has the port.
    #[error("port {port} is in use")]
    AddrInUse {
        /// The port that was asked for.
        port: u16,
    },
    /// No I/O server could be reached in time.
    #[error(
        "no I/O server can be reached; is its daemon running, and the network between the nodes up?"
    )]
    Unreachable,
    /// The I/O server reported another error.
    #[error("the I/O server cannot listen on port {port}: {error}")]
    Refused {
        /// The port that was asked for.
        port: u16,
        /// The I/O server's error, as an OS error.
        error: io::Error,
    },
}

impl ListenError {
    pub(crate) fn new(port: u16, errno: Errno) -> Self {
        match errno {
            Errno::ADDRESS_IN_USE => Self::AddrInUse { port },
            errno => Self::Refused {
                port,
                error: error(errno),
            },
        }
    }

    /// The Linux error number that the program must get.
    pub fn errno(&self) -> i32 {
        let known = |errno: Errno| i32::from(errno.number());
        match self {
            Self::AddrInUse { .. } => known(Errno::ADDRESS_IN_USE),
            Self::Unreachable => known(Errno::NETWORK_DOWN),
            Self::Refused { error, .. } => error.raw_os_error().unwrap_or(known(Errno::IO)),
        }
    }
}

/// A port that the I/O servers listen on for this node; it is given up when dropped. It outlives the channels: an I/O
/// server whose channel is up again is asked again to listen.
#[derive(Debug)]
pub struct Listening {
    pub(crate) port: u16,
    pub(crate) key: u64,
    pub(crate) queue: mpsc::Receiver<Accepted>,
    pub(crate) agent: Arc<Inner>,
}

impl Listening {
    /// The port that the I/O servers listen on, even if they chose it.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the next connection. Cancel safe.
    ///
    /// # Errors
    /// An OS error if every I/O server that could be asked no longer listens. No more connections will come.
    pub async fn accept(&mut self) -> io::Result<Accepted> {
        let accepted = self.queue.recv().await;
        accepted.ok_or_else(|| error(self.agent.why_over(self.key)))
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.agent.unlisten(self.key);
    }
}

/// A client's connection.
#[derive(Debug)]
pub struct Accepted {
    /// The client's address and port.
    pub peer: SocketAddr,
    /// The cluster address and port that the client connected to.
    pub local: SocketAddr,
    /// The connection's bytes.
    pub stream: VirtualStream,
}
