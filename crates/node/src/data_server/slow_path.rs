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
use baton_wire::{Address, HashKey, KeyRing, Message, NodePair, PathHash, Query, encode};

use crate::{locked::locked, peers::heartbeat::clock_now};

/// All that the agent judges by. It is replaced as a whole.
#[derive(Clone, Debug)]
pub struct Docket {
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

impl Docket {
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

    /// Encodes a QUERY, with its tag, for the dispatcher at `pair.to`.
    pub fn seal(&self, query: Query, pair: NodePair) -> Vec<u8> {
        let key = self.keys.with(pair.to).current;
        encode(&Message::Query(query), &[], clock_now(), &key, pair)
    }
}

/// The daemon's handle to the docket: replaces it, and hands out readers of it.
#[derive(Default)]
pub struct Judge(Arc<Mutex<Option<Arc<Docket>>>>);

impl Judge {
    /// Replaces the docket.
    pub fn follow(&self, docket: Docket) {
        *locked(&self.0) = Some(Arc::new(docket));
    }

    /// Returns a reader that always sees the newest docket.
    pub fn opinion(&self) -> Opinion {
        Opinion(Arc::clone(&self.0))
    }
}

/// A reader of the [`Judge`]'s docket: says where a request is to go.
#[derive(Clone)]
pub struct Opinion(Arc<Mutex<Option<Arc<Docket>>>>);

impl Opinion {
    /// Returns the current docket; `None` before the first one is set.
    pub fn docket(&self) -> Option<Arc<Docket>> {
        locked(&self.0).clone()
    }

    /// Judges a request to this service. Returns where a route leads it, which is `None` if the service's own pool
    /// serves it, and the hash of its path. Returns `None` as a whole before a docket is set.
    pub fn of(&self, service: u16, request: &Request) -> Option<(Option<Lead>, Option<u64>)> {
        let docket = self.docket()?;
        let path = request.path().hash(docket.hash_key).map(PathHash::get);
        Some((docket.lead(service, request), path))
    }
}
