//! TCB entries of a connection server that is no longer in front. While another one is in front, connections go on and
//! move. An old entry here would send packets to a former owner, or would take the client's next request to be far too
//! early. So the entries are forgotten. When this node is in front again, each connection's first packet asks the data
//! servers (CLAIM).

use std::time::Duration;

use baton_dataplane::{ConnectionServer, Entries, Tick};
use tokio::{task::JoinHandle, time::sleep};
use tracing::debug;

use crate::logging::logged;

/// How long the entries stay. A migration may still have to read them for its last pass, and packets still come here
/// and are passed on.
const GRACE: Duration = Duration::from_secs(5);

/// The entries that this node has from its time in front, and for which no packet has come since.
pub struct Leftovers {
    last: Tick,
    task: JoinHandle<()>,
}

impl Leftovers {
    /// Starts a task that forgets the entries after a while.
    pub fn leave(server: &ConnectionServer) -> anyhow::Result<Self> {
        let (entries, last) = (server.entries()?, Tick::now());
        let task = tokio::spawn(async move {
            sleep(GRACE).await;
            let done = tokio::task::spawn_blocking(move || forget(&entries, last)).await;
            logged(done.map_err(Into::into));
        });
        Ok(Self { last, task })
    }

    /// Forgets the entries at once if that has not happened yet, because this node is in front again.
    pub fn forget(self, server: &ConnectionServer) -> anyhow::Result<()> {
        if !self.task.is_finished() {
            self.task.abort();
            forget(&server.entries()?, self.last);
        }
        Ok(())
    }
}

fn forget(entries: &Entries, last: Tick) {
    match entries.forget_until(last) {
        Ok(count) => debug!(
            count,
            "removed the TCB entries from an earlier time in front"
        ),
        Err(error) => logged(Err(error.into())),
    }
}
