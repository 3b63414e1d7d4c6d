//! Nothing is left of connections that have ended.

use anyhow::{Result, ensure};
use serde::Deserialize;

use super::log::until;
use crate::world::{CLUSTER, World};

/// On none of these hosts is there a TCP connection of a client with the cluster address, whatever its
/// state.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoConnections {
    on: Vec<String>,
    /// TIME_WAIT is as it should be where servers close first. Where clients do, there is none.
    #[serde(default = "yes")]
    but_time_wait: bool,
}

impl NoConnections {
    /// Waits for it.
    ///
    /// # Errors
    /// One stays.
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

/// A host's connections of the cluster address, a line each, but for those that its daemon makes to
/// check the server there. `states` is ss(8)'s filter beside `connected`.
pub(crate) fn connections(world: &World, host: &str, states: &[&str]) -> Result<String> {
    let cluster = CLUSTER.to_string();
    let connected = ["ss", "-Htn", "state", "connected"];
    let of_clients = ["src", &cluster, "and", "not", "dst", &cluster];
    world.run(host, &[&connected[..], states, &of_clients].concat())
}

fn yes() -> bool {
    true
}
