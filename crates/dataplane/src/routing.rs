//! The maps that say where requests go, and to whom data servers and the switch speak.

use std::{collections::BTreeSet, net::Ipv4Addr};

use baton_abi::{
    CHOICES_PER_POOL, DataServer, HostKey, LargeKey, MAX_LARGE, Place, Pool, Ring, RouteKey,
    SenderKey, short_address,
};
use libbpf_rs::MapHandle;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::{
    Dataplane, Error,
    maps::{element, entries, map_error, only_on_cs, only_on_ds, remove, update},
};

impl Dataplane {
    /// The pool at an index; all zero if there is none.
    pub fn pool(&self, index: u16) -> Result<Pool, Error> {
        let map = only_on_cs("pools", &self.programs().maps.pools)?;
        element("pools", map, index.into())
    }

    /// Sets the pool at an index, at once for all packets.
    pub fn set_pool(&self, index: u16, pool: &Pool) -> Result<(), Error> {
        let map = only_on_cs("pools", &self.programs().maps.pools)?;
        update("pools", map, &u32::from(index), pool)
    }

    /// Makes the hosts map hold exactly these. What stays is never missing meanwhile.
    pub fn set_hosts(&self, hosts: &[(HostKey, u32)]) -> Result<(), Error> {
        let map = only_on_cs("hosts", &self.programs().maps.hosts)?;
        set_all("hosts", map, hosts)
    }

    /// Makes the routes map hold exactly these. What stays is never missing meanwhile.
    pub fn set_routes(&self, routes: &[(RouteKey, u32)]) -> Result<(), Error> {
        let map = only_on_cs("routes", &self.programs().maps.routes)?;
        set_all("routes", map, routes)
    }

    /// Makes the map of large content hold exactly these paths of services, as many as it has room for.
    /// What stays is never missing meanwhile.
    pub fn set_large(&self, wanted: &BTreeSet<(u16, u64)>) -> Result<(), Error> {
        let map = only_on_cs("large", &self.programs().maps.large)?;
        let key = |(service, path): &(u16, u64)| LargeKey {
            path: *path,
            service: (*service).into(),
            reserved: 0,
        };
        let wanted: Vec<_> = wanted.iter().take(MAX_LARGE as usize).collect();
        let mut missing: BTreeSet<_> = wanted.iter().map(|one| **one).collect();
        // Old ones first: together they might not fit.
        for (known, _) in entries::<LargeKey, u32>("large", map)? {
            let is_wanted = u16::try_from(known.service)
                .is_ok_and(|service| missing.remove(&(service, known.path)));
            if !is_wanted {
                remove("large", map, &known)?;
            }
        }
        (missing.iter()).try_for_each(|one| update("large", map, &key(one), &1u32))
    }

    /// Sets the way to a node, for messages of this data server; a default one says that there is none.
    pub fn set_peer(&self, address: Ipv4Addr, way: &DataServer) -> Result<(), Error> {
        let map = only_on_ds("peers", &self.programs().maps.peers)?;
        update("peers", map, &short_address(address), way)
    }

    /// The ways to all nodes that messages of this data server may go to.
    pub fn peers(&self) -> Result<Vec<DataServer>, Error> {
        let map = only_on_ds("peers", &self.programs().maps.peers)?;
        Ok(entries::<u32, DataServer>("peers", map)?
            .into_iter()
            .map(|(_, way)| way)
            .collect())
    }

    /// Makes these the connection servers on this data server's LAN, by MAC.
    pub fn set_senders(&self, senders: &[([u8; 6], Ipv4Addr)]) -> Result<(), Error> {
        let map = only_on_ds("senders", &self.programs().maps.senders)?;
        let entries: Vec<_> = senders
            .iter()
            .map(|(mac, address)| {
                let key = SenderKey {
                    mac: *mac,
                    reserved: 0,
                };
                (key, short_address(*address))
            })
            .collect();
        set_all("senders", map, &entries)
    }

    /// Sets whom this data server asks next for connections of a service.
    pub fn set_ring(&self, service: u16, ring: &Ring) -> Result<(), Error> {
        let map = only_on_ds("rings", &self.programs().maps.rings)?;
        update("rings", map, &u32::from(service), ring)
    }

    /// The switch's whole table.
    pub fn places(&self) -> Result<Vec<Place>, Error> {
        let map = only_on_switch(&self.programs().maps.places)?;
        (0..CHOICES_PER_POOL)
            .map(|at| element("places", map, at))
            .collect()
    }

    /// Sets one place of the switch's table, at once for all packets.
    pub fn set_place(&self, at: u32, place: &Place) -> Result<(), Error> {
        let map = only_on_switch(&self.programs().maps.places)?;
        update("places", map, &at, place)
    }
}

fn only_on_switch(map: &Option<MapHandle>) -> Result<&MapHandle, Error> {
    map.as_ref()
        .ok_or_else(|| map_error("places", "exists on a switch only"))
}

fn set_all<K>(name: &'static str, map: &MapHandle, wanted: &[(K, u32)]) -> Result<(), Error>
where
    K: IntoBytes + Immutable + FromBytes + PartialEq,
{
    for (key, value) in wanted {
        update(name, map, key, value)?;
    }
    for (key, _) in entries::<K, u32>(name, map)? {
        if !wanted.iter().any(|(wanted, _)| *wanted == key) {
            remove(name, map, &key)?;
        }
    }
    Ok(())
}
