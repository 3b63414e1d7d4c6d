//! The maps that say where requests go: of a connection server, and of a data server, whose door routes as well.

pub mod lead;
pub mod tally;

use std::collections::BTreeSet;

use baton_abi::{HostKey, LargeKey, MAX_LARGE, Pool, RouteKey};
use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::{
    Error,
    maps::{element, entries, map_error, remove, update},
};

/// The maps of a node that routes requests.
pub struct Routing {
    pub(crate) pools: MapHandle,
    pub(crate) hosts: MapHandle,
    pub(crate) routes: MapHandle,
    pub(crate) large: MapHandle,
    pub(crate) choices: MapHandle,
    pub(crate) tallies: MapHandle,
    pub(crate) route_ids: MapHandle,
    pub(crate) answers: MapHandle,
    pub(crate) resting: MapHandle,
    pub(crate) kept_requests: MapHandle,
}

impl Routing {
    /// The pool at an index; all zero if there is none.
    pub fn pool(&self, index: u16) -> Result<Pool, Error> {
        element("pools", &self.pools, index.into())
    }

    /// Sets the pool at an index, at once for all packets.
    pub fn set_pool(&self, index: u16, pool: &Pool) -> Result<(), Error> {
        update("pools", &self.pools, &u32::from(index), pool)
    }

    /// Writes `choices`, indices of data servers, from position `first` on.
    pub fn set_choices(&self, first: u32, choices: &[u16]) -> Result<(), Error> {
        let count = u32::try_from(choices.len()).map_err(|error| map_error("choices", error))?;
        if count == 0 {
            return Ok(());
        }
        let keys: Vec<u32> = (first..first + count).collect();
        (self.choices)
            .update_batch(
                keys.as_bytes(),
                choices.as_bytes(),
                count,
                MapFlags::ANY,
                MapFlags::ANY,
            )
            .map_err(|error| map_error("choices", error))
    }

    /// Makes the hosts map hold exactly these. What stays is never missing meanwhile.
    pub fn set_hosts(&self, hosts: &[(HostKey, u32)]) -> Result<(), Error> {
        set_all("hosts", &self.hosts, hosts)
    }

    /// Makes the routes map hold exactly these. What stays is never missing meanwhile.
    pub fn set_routes(&self, routes: &[(RouteKey, u32)]) -> Result<(), Error> {
        set_all("routes", &self.routes, routes)
    }

    /// Makes the map of large content hold exactly these paths of services, as many as it has room for.
    /// What stays is never missing meanwhile.
    pub fn set_large(&self, wanted: &BTreeSet<(u16, u64)>) -> Result<(), Error> {
        let map = &self.large;
        let key = |(service, path): &(u16, u64)| LargeKey {
            path: *path,
            service: (*service).into(),
            reserved: 0,
        };
        let wanted: Vec<_> = wanted.iter().take(MAX_LARGE as usize).collect();
        let mut missing: BTreeSet<_> = wanted.iter().map(|one| **one).collect();
        // Old entries are removed first, because old and new ones together might not fit.
        for (known, _) in entries::<LargeKey, u32>("large", map)? {
            let is_wanted = u16::try_from(known.service)
                .is_ok_and(|service| missing.remove(&(service, known.path)));
            if !is_wanted {
                remove("large", map, &known)?;
            }
        }
        (missing.iter()).try_for_each(|one| update("large", map, &key(one), &1u32))
    }
}

/// Makes a map hold exactly these entries. What stays is never missing meanwhile.
pub(crate) fn set_all<K>(
    name: &'static str,
    map: &MapHandle,
    wanted: &[(K, u32)],
) -> Result<(), Error>
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
