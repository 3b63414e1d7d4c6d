//! The keys that this node shares with each other node. The programs verify messages by them.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
};

use baton_abi::{PeerKeys, short_address};

use crate::{
    Dataplane, Error,
    maps::{entries, remove, update},
};

const MAP: &str = "peer_keys";

impl Dataplane {
    /// The keys that the programs know, by the other node's address.
    pub fn peer_keys(&self) -> Result<BTreeMap<Ipv4Addr, PeerKeys>, Error> {
        let all: Vec<(u32, PeerKeys)> = entries(MAP, &self.programs().common.peer_keys)?;
        Ok(all
            .into_iter()
            .map(|(address, keys)| (address.to_ne_bytes().into(), keys))
            .collect())
    }

    /// Makes the programs know exactly these keys. A node that stays is never unknown meanwhile.
    pub fn set_peer_keys(&self, keys: &BTreeMap<Ipv4Addr, PeerKeys>) -> Result<(), Error> {
        let map = &self.programs().common.peer_keys;
        let known: BTreeSet<Ipv4Addr> = self.peer_keys()?.into_keys().collect();
        for (address, shared) in keys {
            update(MAP, map, &short_address(*address), shared)?;
        }
        for gone in known.iter().filter(|address| !keys.contains_key(address)) {
            remove(MAP, map, &short_address(*gone))?;
        }
        Ok(())
    }
}
