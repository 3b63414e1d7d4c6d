//! Judges which data server is to answer a request, by the same rules and choices as the door.
//!
//! The daemon tells what it judges by, and each change of that. So requests need no daemon to be judged, and while there
//! is none they are judged by what the last one has told.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use baton_core::locked::locked;
use baton_core::policy::Choices;
use baton_core::rules::{Request, Rules};
use baton_wire::Address;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use crate::client::Ends;

/// A request waits this long for a data server that can answer it.
const NOBODY: Duration = Duration::from_secs(2);
/// A request waits this long for a daemon that tells the rules of its service.
const BEGINS: Duration = Duration::from_secs(10);
/// The time between two looks.
const AGAIN: Duration = Duration::from_millis(20);

/// Which data server is to answer a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    /// This one.
    Here,
    /// Another one, at this address.
    Elsewhere(Ipv4Addr),
    /// None can.
    Nobody,
}

/// The rules of a configuration, by which requests find their pools.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RequestRules {
    /// The services whose requests are judged.
    pub services: Vec<JudgedService>,
    /// Finds the number of the route that a request takes.
    pub rules: Rules,
    /// The pool of each route, by the route's number.
    pub pools: HashMap<u16, u16>,
    /// The address of each data server, by its slot.
    pub servers: HashMap<u16, Ipv4Addr>,
    /// The slot of this data server.
    pub own: u16,
}

/// A service whose requests are judged.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct JudgedService {
    /// The cluster address and port.
    pub address: SocketAddrV4,
    /// Its number in the rules.
    pub id: u16,
    /// The pool of requests that take no route.
    pub pool: u16,
}

/// Data servers of a pool among which requests choose. They change with their health and load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolChoices {
    /// How the choices are read (`enum policy`).
    pub policy: u32,
    /// Slots of data servers.
    pub slots: Vec<u16>,
}

/// What judges requests. A clone is the same judge.
#[derive(Clone, Debug, Default)]
pub(super) struct Judge(Arc<Mutex<Known>>);

/// What the daemon has told.
#[derive(Debug, Default)]
struct Known {
    rules: Arc<RequestRules>,
    choices: HashMap<u16, Choices<u16>>,
}

impl Judge {
    fn known(&self) -> MutexGuard<'_, Known> {
        locked(&self.0)
    }

    /// Judges by these rules from now on.
    pub fn follow(&self, rules: Arc<RequestRules>) {
        self.known().rules = rules;
    }

    /// Chooses among these data servers of a pool from now on.
    pub fn choose_among(&self, pool: u16, choices: &PoolChoices) {
        let mut known = self.known();
        let of_pool = known.choices.entry(pool).or_default();
        of_pool.set(choices.policy, &choices.slots);
    }

    /// Says which data server is to answer the request with this head. If there is none, or the service is not known yet,
    /// the request waits for a while.
    pub async fn request(&self, ends: Ends, head: &[u8]) -> Judgement {
        // The agent answers what it cannot read before it asks here.
        let Ok(Some(request)) = Request::read(head) else {
            return Judgement::Nobody;
        };
        let begin = Instant::now();
        loop {
            // No other request waits while rules are searched.
            let rules = Arc::clone(&self.known().rules);
            let pool = rules.pool_of(ends, &request);
            let path = request.path();
            let judged = pool.map(|pool| self.known().choose(pool, ends, path.as_bytes()));
            let patience = match judged {
                Some(Judgement::Nobody) => NOBODY,
                None => BEGINS,
                Some(judged) => return judged,
            };
            if begin.elapsed() > patience {
                return Judgement::Nobody;
            }
            sleep(AGAIN).await;
        }
    }

    /// Says which data server is to have a connection while it has no request.
    pub fn connection(&self, ends: Ends) -> Judgement {
        let mut known = self.known();
        let service = known.rules.service(ends);
        service.map_or(Judgement::Nobody, |service| {
            known.choose(service.pool, ends, b"/")
        })
    }
}

impl RequestRules {
    /// The service of a connection; `None` if it is not known.
    fn service(&self, ends: Ends) -> Option<JudgedService> {
        let mut services = self.services.iter();
        services.find(|one| one.address == ends.cluster).copied()
    }

    /// The pool of a request; `None` if its service is not known.
    fn pool_of(&self, ends: Ends, request: &Request) -> Option<u16> {
        let service = self.service(ends)?;
        let route = self.rules.pool(service.id, request);
        let pool = route.and_then(|route| self.pools.get(&route));
        Some(*pool.unwrap_or(&service.pool))
    }
}

impl Known {
    fn choose(&mut self, pool: u16, ends: Ends, path: &[u8]) -> Judgement {
        let Some(choices) = self.choices.get_mut(&pool) else {
            return Judgement::Nobody;
        };
        if choices.contains(&self.rules.own) {
            return Judgement::Here;
        }
        let chosen = choices.pick(Address::from(*ends.client.ip()), path);
        let server = chosen.and_then(|slot| self.rules.servers.get(&slot));
        server.map_or(Judgement::Nobody, |server| Judgement::Elsewhere(*server))
    }
}

#[cfg(test)]
mod tests;
