//! A step that counts the connections that data servers have.

use anyhow::{Result, ensure};
use serde::Deserialize;

use crate::wait::{patience, until};
use crate::world::{CLUSTER, World};

/// Checks that none of these hosts has a TCP connection of a client with the cluster address, in whatever state, or
/// that there are as many as expected.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoConnections {
    on: Vec<String>,
    /// Whether TIME_WAIT is allowed, as it must be where servers close first. Where clients close first, there is
    /// none.
    #[serde(default = "yes")]
    but_time_wait: bool,
    /// The number of connections that all these hosts together must have.
    #[serde(default)]
    exactly: usize,
}

impl NoConnections {
    /// Waits until there are as many such connections as expected.
    ///
    /// # Errors
    /// A connection stays, or is missing.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let states: &[&str] = if self.but_time_wait {
            &["exclude", "time-wait"]
        } else {
            &[]
        };
        until(patience(), || {
            let mut found = Vec::new();
            for host in &self.on {
                let lines = connections(world, host, states)?;
                found.extend(lines.lines().map(|line| format!("{host}: {line}")));
            }
            ensure!(
                found.len() == self.exactly,
                "{} connections instead of {}:\n{}",
                found.len(),
                self.exactly,
                found.join("\n")
            );
            Ok(())
        })
    }
}

/// The connections of clients with the cluster address at a host, a line each. Connections that the host's daemon
/// makes to check the server there are left out. `states` is ss(8)'s filter, in addition to `connected`.
fn connections(world: &World, host: &str, states: &[&str]) -> Result<String> {
    let cluster = CLUSTER.to_string();
    let connected = ["ss", "-Htn", "state", "connected"];
    let of_clients = ["src", &cluster, "and", "not", "dst", &cluster];
    world.run(host, &[&connected[..], states, &of_clients].concat())
}

fn yes() -> bool {
    true
}
