//! The dispatcher on a node of its own. When a data server asks about a request, it chooses the one that is to
//! serve it, by the same policies by which data servers choose themselves.

use std::collections::HashMap;
use std::time::Duration;

use baton_wire::{Address, Query, Reply};

use crate::policy::Choices;

/// How long an answer is good for requests that are alike. It does not lead to a data server that has gone
/// meanwhile: the data servers that asked know which ones serve.
pub const LIFETIME: Duration = Duration::from_secs(1);

/// The choices of the pools, by the pools' ids.
#[derive(Clone, Debug, Default)]
pub struct DispatcherServer {
    pools: HashMap<u64, Choices<Address>>,
}

impl DispatcherServer {
    /// Sets the choices of a pool from now on, to be read as `policy` (`enum policy`) says.
    pub fn set(&mut self, pool: u64, policy: u32, choices: &[Address]) {
        self.pools.entry(pool).or_default().set(policy, choices);
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
            server: pool.and_then(|pool| pool.pick(query.flow().client().address, query.path())),
            lifetime_ms: LIFETIME.as_millis() as u32, // a constant that fits
        }
    }
}
