//! TCB entries of a connection server that is no longer in front. While another one is in front, connections go on and
//! move. An old entry here would send packets to a former owner, or would take the client's next request to be far too
//! early. So the entries are forgotten: after a while, when this node is in front again, or when another node's entries
//! begin to come, whichever is first. A connection whose entry is missing when this node is in front again is asked for
//! with its first packet (CLAIM).

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use baton_dataplane::{ConnectionServer, Entries, Error, Tick};
use tokio::time::sleep;
use tracing::debug;

use crate::{locked::locked, logging::logged};

/// How long the entries stay. A migration may still have to read them for its last pass, and packets still come here
/// and are passed on.
const GRACE: Duration = Duration::from_secs(5);

/// The entries that this node has from its last time in front, and for which no packet has come since.
#[derive(Clone)]
pub struct Leftovers {
    entries: Arc<Entries>,
    /// When that time ended; `None` if this node is in front, or if the entries are forgotten.
    since: Arc<Mutex<Option<Tick>>>,
}

impl Leftovers {
    /// Makes the handle of a node that has no such entries.
    pub fn none(server: &ConnectionServer) -> Result<Self, Error> {
        Ok(Self {
            entries: Arc::new(server.entries()?),
            since: Arc::default(),
        })
    }

    /// Notes that this node is no longer in front, and has the entries forgotten after a while.
    pub fn leave(&self) {
        let since = Tick::now();
        *locked(&self.since) = Some(since);
        let leftovers = self.clone();
        tokio::spawn(async move {
            sleep(GRACE).await;
            if *locked(&leftovers.since) == Some(since) {
                let done = tokio::task::spawn_blocking(move || leftovers.forget()).await;
                logged(done.map_err(Into::into));
            }
        });
    }

    /// Forgets the entries at once, if that has not happened yet.
    pub fn forget(&self) {
        let Some(last) = locked(&self.since).take() else {
            return;
        };
        match self.entries.forget_until(last) {
            Ok(count) => debug!(
                count,
                "removed the TCB entries from an earlier time in front"
            ),
            Err(error) => logged(Err(error.into())),
        }
    }
}
