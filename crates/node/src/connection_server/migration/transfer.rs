//! The moment in which the cluster addresses move. The task asks for it, the daemon has failover do it:
//! this is all that migration knows of who is in front.

use std::{
    net::Ipv4Addr,
    time::{Duration, Instant},
};

use baton_config::FrontAddress;
use tokio::sync::oneshot;

use crate::daemon::Daemon;

/// The other node should be in front within `detection`; a daemon that is busy gets some more.
const SLACK: Duration = Duration::from_secs(2);

/// A request of the task's, and where its answer goes.
pub struct Transfer {
    pub to: Ipv4Addr,
    pub done: oneshot::Sender<Result<(), String>>,
}

/// The addresses are on their way.
pub struct Pending {
    done: oneshot::Sender<Result<(), String>>,
    until: Instant,
}

impl Daemon {
    /// The next transfer that is asked for.
    pub(crate) async fn next_transfer(transfers: &mut super::Migrations) -> Transfer {
        match transfers.transfers.recv().await {
            Some(transfer) => transfer,
            // The task has ended; the daemon need not.
            None => std::future::pending().await,
        }
    }

    /// Lets the addresses go to another candidate. Where they are not baton's to move, there is nothing
    /// to do, and whoever does it is told by `baton migrate`.
    pub(crate) fn begin_transfer(&mut self, transfer: Transfer) {
        let Transfer { to, done } = transfer;
        if !self.moves_addresses() {
            // Who asked may have gone.
            let _ = done.send(Ok(()));
            return;
        }
        if !self.hand_front_to(to) {
            let _ = done.send(Err(
                "this node is not in front any more, or does not hear the other one".into(),
            ));
            return;
        }
        let detection = (self.place.config.failover.as_ref()).map(|found| found.detection);
        self.migrations.pending = Some(Pending {
            done,
            until: Instant::now() + detection.unwrap_or_default() + SLACK,
        });
    }

    /// Looks whether the addresses have gone.
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
        let failover = self.place.config.failover.as_ref();
        failover.is_some_and(|found| found.address == FrontAddress::Managed)
    }

    /// As `baton status` shows it.
    pub(super) fn front_state(&self) -> Option<String> {
        self.failover_status().map(|status| status.state)
    }
}
