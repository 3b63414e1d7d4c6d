//! What this node's agent judges requests by: rules, and whom to ask. Replaced at once where the configuration is.

use std::{
    collections::HashMap,
    net::Ipv4Addr,
    sync::{Arc, Mutex},
    time::Duration,
};

use baton_abi::Pool;
use baton_core::rules::{Request, Rules};
use baton_dataplane::Lead;
use baton_wire::{Address, HashKey, KeyRing, Message, NodePair, PathHash, Query, encode};

use crate::{locked::locked, peers::heartbeat::clock_now};

/// What it judges by: all of it replaced at once.
#[derive(Clone, Debug)]
pub struct Docket {
    /// They lead to numbers of routes.
    pub rules: Rules,
    /// Where each route leads, by its number.
    pub leads: HashMap<u16, Lead>,
    /// Dispatchers on other nodes that choose for services, by the services' ids.
    pub dispatchers: HashMap<u16, Ipv4Addr>,
    /// Indices of data servers.
    pub servers: HashMap<Address, u16>,
    pub keys: KeyRing,
    pub hash_key: HashKey,
    pub clock_window: Duration,
    pub patience: Duration,
}

impl Docket {
    /// Where the rules lead a request.
    fn lead(&self, service: u16, request: &Request) -> Option<Lead> {
        let route = self.rules.pool(service, request)?;
        self.leads.get(&route).copied()
    }

    /// Index of a data server that a dispatcher names, if it is in this pool.
    pub fn named(&self, server: Address, pool: &Pool) -> Option<u16> {
        let index = self.servers.get(&server).copied();
        index.filter(|index| pool.has(*index))
    }

    /// QUERY, as it leaves for its dispatcher.
    pub fn seal(&self, query: Query, pair: NodePair) -> Vec<u8> {
        let key = self.keys.with(pair.to).current;
        encode(&Message::Query(query), &[], clock_now(), &key, pair)
    }
}

/// What the daemon holds of it.
#[derive(Default)]
pub struct Judge(Arc<Mutex<Option<Arc<Docket>>>>);

impl Judge {
    /// Judges by this from now on.
    pub fn follow(&self, docket: Docket) {
        *locked(&self.0) = Some(Arc::new(docket));
    }

    /// What it judges by, for others to ask.
    pub fn opinion(&self) -> Opinion {
        Opinion(Arc::clone(&self.0))
    }
}

/// Where requests go, as the judge would lead them.
#[derive(Clone)]
pub struct Opinion(Arc<Mutex<Option<Arc<Docket>>>>);

impl Opinion {
    /// All that it goes by.
    pub fn docket(&self) -> Option<Arc<Docket>> {
        locked(&self.0).clone()
    }

    /// Of a request to this service: its pool, if not the service's own, and the hash of its path. `None` before anything is
    /// known of routes.
    pub fn of(&self, service: u16, request: &Request) -> Option<(Option<Lead>, Option<u64>)> {
        let docket = self.docket()?;
        let path = request.path().hash(docket.hash_key).map(PathHash::get);
        Some((docket.lead(service, request), path))
    }
}
