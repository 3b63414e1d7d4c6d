//! What only a connection server's daemon does: it takes part in failover, moves entries to another connection server,
//! and handles connections whose data server drains or has died.

pub mod failover;
pub mod mid_response_handover;
pub mod migration;
pub mod segments;

use baton_core::failover::Action;
use baton_dataplane::Swept;

use self::{
    failover::{leftovers::Leftovers, running::Running},
    segments::Segments,
};

/// What the daemon of a connection server has besides what every daemon has.
pub struct ConnectionServer {
    /// Sends segments in a server's name to clients whose connections no data server has.
    pub segments: Segments,
    /// What the last sweep of the TCP table found.
    pub swept: Swept,
    /// How many entries have expired since the start.
    pub expired: u64,
    /// The failover thread. It runs if baton moves the cluster addresses between candidates and this node is one of them.
    pub failover: Option<Running>,
    /// The TCB entries from the last time in front.
    pub leftovers: Leftovers,
}

impl ConnectionServer {
    /// Makes the state of a connection server before its first sweep.
    ///
    /// # Errors
    /// The kernel gives no socket to send whole packets by.
    pub fn begin(leftovers: Leftovers) -> anyhow::Result<Self> {
        Ok(Self {
            segments: Segments::open()?,
            swept: Swept::default(),
            expired: 0,
            failover: None,
            leftovers,
        })
    }

    /// Waits for the next decision of failover; never returns if this node takes no part in it.
    pub async fn failover_decision(server: &mut Option<Self>) -> Action {
        let running = server.as_mut().and_then(|server| server.failover.as_mut());
        let decided = match running {
            Some(running) => running.decision().await,
            None => None,
        };
        match decided {
            Some(action) => action,
            None => std::future::pending().await,
        }
    }
}
