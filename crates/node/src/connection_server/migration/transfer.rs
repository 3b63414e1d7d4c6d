//! The moment in which the cluster addresses move. The task asks the daemon for it, and the daemon has failover do it.
//! Migration uses nothing else of failover.

use std::time::{Duration, Instant};

use baton_config::FrontAddress;

use super::{Pending, shared::Transfer};
use crate::daemon::Daemon;

/// The other node should be in front within `detection`. A busy daemon gets this much longer.
const SLACK: Duration = Duration::from_secs(2);

impl Daemon {
    /// Waits for the next transfer that the task asks for.
    pub(crate) async fn next_transfer(transfers: &mut super::Migrations) -> Transfer {
        match transfers.transfers.recv().await {
            Some(transfer) => transfer,
            // The task has ended. The daemon can go on without it.
            None => std::future::pending().await,
        }
    }

    /// Lets the addresses go to another candidate. If baton does not move them, this does nothing, and `baton migrate`
    /// tells the operator to move them.
    pub(crate) fn begin_transfer(&mut self, transfer: Transfer) {
        let Transfer { to, done } = transfer;
        if !self.moves_addresses() {
            // Sending fails only if the task has ended.
            let _ = done.send(Ok(()));
            return;
        }
        if !self.hand_front_to(to) {
            let _ = done.send(Err(
                "this node is no longer in front, or does not hear the other one".into(),
            ));
            return;
        }
        let detection = (self.local.config.failover.as_ref()).map(|found| found.detection);
        self.migrations.pending = Some(Pending {
            done,
            until: Instant::now() + detection.unwrap_or_default() + SLACK,
        });
    }

    /// Checks whether the addresses have gone, and answers the task once that is decided.
    pub(crate) fn follow_transfer(&mut self) {
        let Some(pending) = self.migrations.pending.take() else {
            return;
        };
        let result = match self.front_state().as_deref() {
            Some("standby") => Ok(()),
            Some("handing over") if Instant::now() < pending.until => {
                self.migrations.pending = Some(pending);
                return;
            }
            _ => Err("the other node did not take the cluster addresses: its log says why".into()),
        };
        let _ = pending.done.send(result);
    }

    /// Whether baton moves the cluster addresses between candidates.
    pub(super) fn moves_addresses(&self) -> bool {
        let failover = self.local.config.failover.as_ref();
        failover.is_some_and(|found| found.address == FrontAddress::Managed)
    }

    /// Returns the state of failover as `baton status` shows it.
    pub(super) fn front_state(&self) -> Option<String> {
        self.failover_status().map(|status| status.state)
    }
}
