//! Nothing is left of connections that have ended.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde::Deserialize;

use crate::world::{CLUSTER, World};

/// On none of these hosts is there a TCP connection of the cluster address, whatever its state; but
/// for TIME_WAIT, which is as it should be.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoConnections {
    on: Vec<String>,
}

impl NoConnections {
    /// Waits for it.
    ///
    /// # Errors
    /// One stays.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let cluster = CLUSTER.to_string();
        let sockets = ["ss", "-Htn", "state", "connected", "exclude", "time-wait"];
        let ours = [&sockets[..], &["src", &cluster]].concat();
        let end = Instant::now() + super::patience().0;
        for host in &self.on {
            loop {
                let left = world.run(host, &ours)?;
                if left.is_empty() {
                    break;
                }
                ensure!(Instant::now() < end, "{host} still has\n{left}");
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        Ok(())
    }
}
