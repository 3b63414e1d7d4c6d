//! The dispatcher on a node of its own. When a data server asks about a request, it chooses the one that is to
//! serve it, by the same policies by which data servers choose themselves.

use std::collections::HashMap;
use std::time::Duration;

use baton_wire::{Address, Query, Reply};

use crate::policy::Rotation;

/// How long an answer is good for requests that are alike. It does not lead to a data server that has gone
/// meanwhile: the data servers that asked know which ones serve.
pub const LIFETIME: Duration = Duration::from_secs(1);

/// The pools by id, and which choice is next in each.
#[derive(Clone, Debug, Default)]
pub struct DispatcherServer {
    pools: HashMap<u64, Pool>,
}

#[derive(Clone, Debug)]
struct Pool {
    policy: u32,
    choices: Vec<Address>,
    rotation: Rotation,
}

impl DispatcherServer {
    /// Sets the choices of a pool from now on, to be read as `policy` (`enum policy`) says.
    pub fn set(&mut self, pool: u64, policy: u32, choices: Vec<Address>) {
        let rotation = (self.pools.get(&pool)).map_or_else(Rotation::default, |pool| pool.rotation);
        let new = Pool {
            policy,
            choices,
            rotation,
        };
        self.pools.insert(pool, new);
    }

    /// Forgets all pools except these.
    pub fn keep(&mut self, pools: &[u64]) {
        self.pools.retain(|pool, _| pools.contains(pool));
    }

    /// The answer to a question, which does not depend on the data server that asks.
    pub fn answer(&mut self, query: &Query) -> Reply {
        let pool = self.pools.get_mut(&query.pool());
        Reply {
            flow: query.flow(),
            number: query.number(),
            server: pool.and_then(|pool| {
                let client = query.flow().client().address;
                (pool.rotation).pick(pool.policy, &pool.choices, client, query.path())
            }),
            lifetime_ms: LIFETIME.as_millis() as u32, // a constant that fits
        }
    }
}
