//! The dispatcher on a node of its own: which data server is to serve a request that a data server
//! asks about, by the same policies by which data servers choose themselves.

use std::collections::HashMap;
use std::time::Duration;

use baton_wire::{Address, Query, Reply};

use crate::policy::Rotation;

/// So long an answer is good for requests that are alike. Who has gone meanwhile is not chosen by it: the
/// data servers that asked know who serves.
pub const LIFETIME: Duration = Duration::from_secs(1);

/// The pools, by id, and who is next in each.
#[derive(Clone, Debug, Default)]
pub struct Desk {
    pools: HashMap<u64, Pool>,
}

#[derive(Clone, Debug)]
struct Pool {
    policy: u32,
    choices: Vec<Address>,
    rotation: Rotation,
}

impl Desk {
    /// From now on these are the choices of a pool, read as `policy` (`enum policy`) says.
    pub fn set(&mut self, pool: u64, policy: u32, choices: Vec<Address>) {
        let rotation = (self.pools.get(&pool)).map_or_else(Rotation::default, |pool| pool.rotation);
        let new = Pool {
            policy,
            choices,
            rotation,
        };
        self.pools.insert(pool, new);
    }

    /// Forgets all pools but these.
    pub fn keep(&mut self, pools: &[u64]) {
        self.pools.retain(|pool, _| pools.contains(pool));
    }

    /// The answer to a question, whoever asks.
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
