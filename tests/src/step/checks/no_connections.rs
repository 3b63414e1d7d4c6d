//! A step that checks that nothing is left of connections that have ended.

use anyhow::{Result, ensure};
use serde::Deserialize;

use super::log::until;
use crate::world::{CLUSTER, World};

/// Checks that none of these hosts has a TCP connection of a client with the cluster address, in whatever state.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoConnections {
    on: Vec<String>,
    /// Whether TIME_WAIT is allowed, as it must be where servers close first. Where clients close first, there is
    /// none.
    #[serde(default = "yes")]
    but_time_wait: bool,
}

impl NoConnections {
    /// Waits until all such connections are gone.
    ///
    /// # Errors
    /// A connection stays.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let states: &[&str] = if self.but_time_wait {
            &["exclude", "time-wait"]
        } else {
            &[]
        };
        self.on.iter().try_for_each(|host| {
            until(crate::step::patience(), || {
                let left = connections(world, host, states)?;
                ensure!(left.is_empty(), "{host} still has\n{left}");
                Ok(())
            })
        })
    }
}

/// The connections of clients with the cluster address at a host, a line each. Connections that the host's daemon
/// makes to check the server there are left out. `states` is ss(8)'s filter, in addition to `connected`.
pub(crate) fn connections(world: &World, host: &str, states: &[&str]) -> Result<String> {
    let cluster = CLUSTER.to_string();
    let connected = ["ss", "-Htn", "state", "connected"];
    let of_clients = ["src", &cluster, "and", "not", "dst", &cluster];
    world.run(host, &[&connected[..], states, &of_clients].concat())
}

fn yes() -> bool {
    true
}
