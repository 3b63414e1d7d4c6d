//! The daemon's handle to the failover thread.

use std::sync::{Arc, MutexGuard};

use baton_core::failover::{Action, Failover};
use tokio::{sync::mpsc, task::AbortHandle};

use super::heartbeat::Shared;
use crate::locked::locked;

/// The daemon's handle to failover, on a candidate for addresses that baton moves.
pub struct Running {
    pub(super) shared: Arc<Shared>,
    pub(super) decided: mpsc::UnboundedReceiver<Action>,
    /// Whether this node is to have the cluster addresses, by the last decision that the daemon acted on.
    pub(super) holds: bool,
    pub(super) announcing: Option<AbortHandle>,
}

impl Running {
    pub(super) fn machine(&self) -> MutexGuard<'_, Failover> {
        locked(&self.shared.machine)
    }

    /// Waits for the next decision.
    pub async fn decision(&mut self) -> Option<Action> {
        self.decided.recv().await
    }
}
