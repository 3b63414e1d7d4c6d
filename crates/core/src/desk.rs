//! The dispatcher on a node of its own: which data server is to serve a request that a data server
//! asks about, by the same policies by which data servers choose themselves.

use std::collections::HashMap;
use std::hash::Hasher as _;
use std::time::Duration;

use baton_abi::{POLICY_CLIENT, POLICY_PATH};
use baton_wire::{Address, Query, Reply};
use siphasher::sip::SipHasher24;

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
    turn: usize,
}

impl Desk {
    /// From now on these are the choices of a pool, read as `policy` (`enum policy`) says.
    pub fn set(&mut self, pool: u64, policy: u32, choices: Vec<Address>) {
        let turn = self.pools.get(&pool).map_or(0, |pool| pool.turn);
        let new = Pool {
            policy,
            choices,
            turn,
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
            server: pool.and_then(|pool| pool.choose(query)),
            lifetime_ms: LIFETIME.as_millis() as u32, // a constant that fits
        }
    }
}

impl Pool {
    fn choose(&mut self, query: &Query) -> Option<Address> {
        let place = match self.policy {
            POLICY_CLIENT => hash(&query.flow().client().address.octets()),
            POLICY_PATH => hash(query.path()),
            _ => {
                self.turn = self.turn.wrapping_add(1);
                self.turn
            }
        };
        let place = place.checked_rem(self.choices.len())?;
        self.choices.get(place).copied()
    }
}

pub(crate) fn hash(bytes: &[u8]) -> usize {
    let mut hasher = SipHasher24::new();
    hasher.write(bytes);
    hasher.finish() as usize
}
