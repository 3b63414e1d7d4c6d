//! The rules by which this node's agent judges requests, and the dispatchers that it asks. A new configuration replaces
//! them as a whole.

use std::{
    collections::HashMap,
    net::Ipv4Addr,
    sync::{Arc, Mutex},
    time::Duration,
};

use baton_abi::Pool;
use baton_core::rules::{Request, Rules};
use baton_dataplane::Lead;
use baton_wire::{Address, HashKey, KeyRing, PathHash};

use crate::locked::locked;

/// All that the agent judges by. It is replaced as a whole.
#[derive(Clone, Debug)]
pub struct RuleSet {
    /// The rules, which lead requests to numbers of routes.
    pub rules: Rules,
    /// The pool to which each route leads, by the route's number.
    pub leads: HashMap<u16, Lead>,
    /// Dispatchers on other nodes that choose for services, by the services' ids.
    pub dispatchers: HashMap<u16, Ipv4Addr>,
    /// The indices of data servers in the maps, by address.
    pub servers: HashMap<Address, u16>,
    pub keys: KeyRing,
    pub hash_key: HashKey,
    pub clock_window: Duration,
    pub patience: Duration,
}

impl RuleSet {
    /// Returns where the rules lead a request to this service; `None` if no route matches.
    fn lead(&self, service: u16, request: &Request) -> Option<Lead> {
        let route = self.rules.pool(service, request)?;
        self.leads.get(&route).copied()
    }

    /// Returns the index of a data server that a dispatcher names, if the data server is in this pool.
    pub fn named(&self, server: Address, pool: &Pool) -> Option<u16> {
        let index = self.servers.get(&server).copied();
        index.filter(|index| pool.has(*index))
    }
}

/// The daemon's handle to the rule set: replaces it, and hands out readers of it.
#[derive(Default)]
pub struct SlowPath(Arc<Mutex<Option<Arc<RuleSet>>>>);

impl SlowPath {
    /// Replaces the rule set.
    pub fn follow(&self, rule_set: RuleSet) {
        *locked(&self.0) = Some(Arc::new(rule_set));
    }

    /// Returns a reader that always sees the newest rule set.
    pub fn reader(&self) -> RuleReader {
        RuleReader(Arc::clone(&self.0))
    }
}

/// A reader of the [`SlowPath`]'s rule set: says where a request is to go.
#[derive(Clone)]
pub struct RuleReader(Arc<Mutex<Option<Arc<RuleSet>>>>);

impl RuleReader {
    /// Returns the current rule set; `None` before the first one is set.
    pub fn rule_set(&self) -> Option<Arc<RuleSet>> {
        locked(&self.0).clone()
    }

    /// Judges a request to this service. Returns where a route leads it, which is `None` if the service's own pool
    /// serves it, and the hash of its path. Returns `None` as a whole before a rule set is set.
    pub fn of(&self, service: u16, request: &Request) -> Option<(Option<Lead>, Option<u64>)> {
        let rule_set = self.rule_set()?;
        let path = request.path().hash(rule_set.hash_key).map(PathHash::get);
        Some((rule_set.lead(service, request), path))
    }
}
