//! The rules of the current configuration, by which the daemon itself judges requests, and what it needs to ask
//! dispatchers on other nodes. A new configuration replaces both as a whole.

use std::{
    collections::HashMap,
    net::Ipv4Addr,
    sync::{Arc, Mutex},
    time::Duration,
};

use baton_abi::Pool;
use baton_agent::terminate::judge::{JudgedService, RequestRules};
use baton_core::rules::{ClientHello, Request, Rules};
use baton_dataplane::Lead;
use baton_wire::{Address, HashKey, KeyRing, PathHash};

use crate::locked::locked;

/// The rules of one configuration, and the settings for asking dispatchers. It is replaced as a whole.
#[derive(Clone, Debug)]
pub struct RuleSet {
    /// Finds the number of the route that a request takes.
    pub rules: Rules,
    /// The pool of each route, and whether its responses can be resumed, by the route's number.
    pub leads: HashMap<u16, Lead>,
    /// The address of each service's dispatcher, if that is on another node, by the service's id.
    pub dispatchers: HashMap<u16, Ipv4Addr>,
    /// The index of each data server in the maps, by address.
    pub servers: HashMap<Address, u16>,
    /// The keys for messages to and from other nodes.
    pub keys: KeyRing,
    /// The key of the hashes of paths.
    pub hash_key: HashKey,
    /// Messages older or newer than this are refused.
    pub clock_window: Duration,
    /// How long the answer of a dispatcher is awaited.
    pub patience: Duration,
}

impl RuleSet {
    /// Returns where the route leads that the rules have found; `None` if they have found none. These rules are made
    /// with numbers of routes in place of pools (tables/routes.rs).
    fn lead(&self, found: Option<u16>) -> Option<Lead> {
        self.leads.get(&found?).copied()
    }

    /// By what the TLS agent of the data server at the address `own` judges requests to these services. `None`: this data
    /// server is none of the cluster's.
    pub fn request_rules(
        &self,
        services: Vec<JudgedService>,
        own: Ipv4Addr,
    ) -> Option<RequestRules> {
        let pools = self.leads.iter().map(|(route, lead)| (*route, lead.pool));
        let servers = (self.servers.iter()).filter_map(|(at, slot)| Some((*slot, at.ipv4()?)));
        Some(RequestRules {
            services,
            rules: self.rules.clone(),
            pools: pools.collect(),
            servers: servers.collect(),
            own: *self.servers.get(&own.into())?,
        })
    }

    /// Returns the index of this data server if it is a member of the pool.
    pub fn named(&self, server: Address, pool: &Pool) -> Option<u16> {
        let index = self.servers.get(&server).copied();
        index.filter(|index| pool.has(*index))
    }
}

/// The rule set of the current configuration, if there was one yet: the daemon replaces it, and others read it.
#[derive(Default)]
pub struct CurrentRules(Arc<Mutex<Option<Arc<RuleSet>>>>);

impl CurrentRules {
    /// Replaces the rule set.
    pub fn replace(&self, rule_set: RuleSet) {
        *locked(&self.0) = Some(Arc::new(rule_set));
    }

    /// Returns a reader that always sees the newest rule set.
    pub fn reader(&self) -> RuleReader {
        RuleReader(Arc::clone(&self.0))
    }
}

/// A reader of the [`CurrentRules`]'s rule set: says where a request is to go.
#[derive(Clone)]
pub struct RuleReader(Arc<Mutex<Option<Arc<RuleSet>>>>);

impl RuleReader {
    /// Returns the current rule set; `None` before the first one is set.
    pub fn rule_set(&self) -> Option<Arc<RuleSet>> {
        locked(&self.0).clone()
    }

    /// Judges a request to this service. Returns where its route leads (`None`: no route matches, so the service's own
    /// pool answers) and the hash of its path (`None`: it has no path). Returns `None` before the first rule set is set.
    pub fn of(&self, service: u16, request: &Request) -> Option<(Option<Lead>, Option<u64>)> {
        let rule_set = self.rule_set()?;
        let path = request.path().hash(rule_set.hash_key).map(PathHash::get);
        Some((rule_set.lead(rule_set.rules.pool(service, request)), path))
    }

    /// Judges a TLS connection to this service by its ClientHello, as [`RuleReader::of`] judges a request.
    pub fn of_tls(&self, service: u16, hello: &ClientHello) -> Option<Option<Lead>> {
        let rule_set = self.rule_set()?;
        Some(rule_set.lead(rule_set.rules.pool_of_tls(service, hello)))
    }
}
