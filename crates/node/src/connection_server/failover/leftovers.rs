//! TCB entries of a connection server that is not in front any more. While another one is, connections go on and move, and
//! an entry that was left here would send packets to who had the connection then, or hold its client's next request to be
//! far too early. So they are forgotten: of each connection the first packet asks the data servers (CLAIM).

use std::time::Duration;

use baton_dataplane::{ConnectionServer, Entries, Tick};
use tokio::{task::JoinHandle, time::sleep};
use tracing::debug;

use crate::logging::logged;

/// Meanwhile the last of a migration is read, and packets still come here and are passed on.
const GRACE: Duration = Duration::from_secs(5);

/// Entries that nothing has come for since this node was in front.
pub struct Leftovers {
    last: Tick,
    task: JoinHandle<()>,
}

impl Leftovers {
    /// Has them forgotten in a while.
    pub fn leave(server: &ConnectionServer) -> anyhow::Result<Self> {
        let (entries, last) = (server.entries()?, Tick::now());
        let task = tokio::spawn(async move {
            sleep(GRACE).await;
            let done = tokio::task::spawn_blocking(move || forget(&entries, last)).await;
            logged(done.map_err(Into::into));
        });
        Ok(Self { last, task })
    }

    /// Has them forgotten now, if they are not yet: this node is in front again.
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
        Ok(count) => debug!(count, "TCB entries from earlier in front are forgotten"),
        Err(error) => logged(Err(error.into())),
    }
}
