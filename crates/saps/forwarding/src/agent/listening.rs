//! A port that the I/O server listens on for a program of this node.

use std::io;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::state::AgentState;
use crate::Accepted;
use crate::shared::error;

/// A port that the I/O server listens on for this node; it is given up when dropped. It outlives the channel: the I/O
/// server is asked to listen again when the channel is up again.
#[derive(Debug)]
pub struct Listening {
    pub(super) port: u16,
    pub(super) key: u64,
    pub(super) queue: mpsc::Receiver<Accepted>,
    pub(super) agent: Arc<AgentState>,
}

impl Listening {
    /// The port that the I/O server listens on, even if the I/O server chose it.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the next connection. Cancel safe.
    ///
    /// # Errors
    /// An OS error if the I/O server no longer listens. No more connections will come.
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
