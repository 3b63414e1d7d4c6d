//! A port that the I/O server listens on for a program of this node.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use baton_saps_protocol::wire::Errno;
use tokio::sync::mpsc;

use crate::VirtualStream;
use crate::agent::Inner;
use crate::shared::error;

/// Why there is no listener. [`ListenError::errno`] is what listen(2) or bind(2) would have said.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// Another program of this node, or one of the I/O server's host, has the port.
    #[error("port {port} is in use")]
    AddrInUse {
        /// The port asked for.
        port: u16,
    },
    /// No I/O server could be reached in time.
    #[error(
        "no I/O server can be reached; is its daemon running, and the network between the nodes up?"
    )]
    Unreachable,
    /// Another error of the I/O server's.
    #[error("the I/O server cannot listen on port {port}: {error}")]
    Refused {
        /// The port asked for.
        port: u16,
        /// An OS error.
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

    /// The Linux error number for the program.
    pub fn errno(&self) -> i32 {
        let known = |errno: Errno| i32::from(errno.number());
        match self {
            Self::AddrInUse { .. } => known(Errno::ADDRESS_IN_USE),
            Self::Unreachable => known(Errno::NETWORK_DOWN),
            Self::Refused { error, .. } => error.raw_os_error().unwrap_or(known(Errno::IO)),
        }
    }
}

/// A port that the I/O servers listen on for us; given up when dropped. It outlives the channels: when an I/O server
/// is back, it is asked to listen again.
#[derive(Debug)]
pub struct Listening {
    pub(crate) port: u16,
    pub(crate) key: u64,
    pub(crate) queue: mpsc::Receiver<Accepted>,
    pub(crate) agent: Arc<Inner>,
}

impl Listening {
    /// The port, also where the I/O server chose it.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The next connection. Cancel safe.
    ///
    /// # Errors
    /// An OS error if no I/O server listens for us any more, though one could be asked; no connection will come.
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
    /// The client.
    pub peer: SocketAddr,
    /// The cluster address and port that it connected to.
    pub local: SocketAddr,
    /// Its bytes.
    pub stream: VirtualStream,
}
