//! The TCP table as a whole, read and written in bulk, and what its entries' indices mean: for a task of
//! its own.

use std::os::fd::AsFd as _;

use baton_abi::{
    DataServer, MAX_DATA_SERVERS, MAX_POOLS, Pool, Service, ServiceKey, TALLIED_ROUTES, Tcb, TcbKey,
};
use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use zerocopy::{FromBytes, FromZeros as _, IntoBytes};

use crate::{
    ConnectionServer, Error, Tick,
    maps::{again, entries, forget, lookup, map_error},
    sys,
};

/// How many entries one call copies, unless one bucket has more.
const AT_ONCE: usize = 16_384;

/// The TCP table of a connection server.
pub struct Entries {
    tcbs: MapHandle,
    data_servers: MapHandle,
    pools: MapHandle,
    route_ids: MapHandle,
    services: MapHandle,
    flows: MapHandle,
}

impl ConnectionServer {
    /// A second handle to the TCP table, and to the maps that say what its indices mean.
    pub fn entries(&self) -> Result<Entries, Error> {
        let (common, routing) = (&self.common, &self.routing);
        Ok(Entries {
            tcbs: again("tcbs", &self.tcbs)?,
            data_servers: again("data_servers", &common.data_servers)?,
            pools: again("pools", &routing.pools)?,
            route_ids: again("route_ids", &routing.route_ids)?,
            services: again("services", &common.services)?,
            flows: again("flows", &self.flows)?,
        })
    }
}

impl Entries {
    /// All entries, each as it was at some moment of the walk. One that comes meanwhile may be missing. A
    /// packet may change an entry while it is copied, so that a copy can hold words of before and after; the
    /// next copy shows that it has changed.
    ///
    /// The kernel itself walks, because it passes an empty bucket in a nanosecond, and most buckets are empty.
    pub fn read(&self) -> Result<Vec<(TcbKey, Tcb)>, Error> {
        let mut all = Vec::new();
        let (mut place, mut most) = (None, AT_ONCE);
        loop {
            let mut keys = TcbKey::new_vec_zeroed(most).map_err(|_| no_memory())?;
            let mut tcbs = Tcb::new_vec_zeroed(most).map_err(|_| no_memory())?;
            let copied = sys::copy_elements(self.tcbs.as_fd(), place, &mut keys, &mut tcbs);
            let copied = match copied {
                // One bucket has more entries than there was room for.
                Err(error) if error.raw_os_error() == Some(nix::libc::ENOSPC) => {
                    most *= 2;
                    continue;
                }
                copied => copied.map_err(|error| map_error("tcbs", error))?,
            };
            all.extend(keys.into_iter().zip(tcbs).take(copied.count));
            match copied.next {
                Some(_) => place = copied.next,
                None => return Ok(all),
            }
        }
    }

    /// The entry of one connection, if there is one.
    pub fn get(&self, key: &TcbKey) -> Result<Option<Tcb>, Error> {
        lookup("tcbs", &self.tcbs, key)
    }

    /// Writes entries. They replace existing entries of the same connections.
    pub fn write(&self, keys: &[TcbKey], values: &[Tcb]) -> Result<(), Error> {
        let count = keys.len().min(values.len());
        if count == 0 {
            return Ok(());
        }
        let number = u32::try_from(count).map_err(|error| map_error("tcbs", error))?;
        self.tcbs
            .update_batch(
                keys[..count].as_bytes(),
                values[..count].as_bytes(),
                number,
                MapFlags::ANY,
                MapFlags::ANY,
            )
            .map_err(|error| map_error("tcbs", error))
    }

    /// Deletes the entries of connections of which nothing has come after this tick. Returns how many these were.
    pub fn forget_until(&self, last: Tick) -> Result<usize, Error> {
        let is_old = |tcb: &Tcb| last.0.wrapping_sub(tcb.seen).cast_signed() >= 0;
        let all = self.read()?;
        let mut forgotten = 0;
        for (key, _) in all.iter().filter(|(_, tcb)| is_old(tcb)) {
            // The sweep may have deleted the entry already.
            forgotten += usize::from(forget("tcbs", &self.tcbs, key)?);
        }
        Ok(forgotten)
    }

    /// How many entries the TCP table has room for.
    pub fn capacity(&self) -> u32 {
        self.tcbs.max_entries()
    }

    /// How many entries there were at the last sweep.
    pub fn live(&self) -> Result<u64, Error> {
        let flows: Vec<u32> = array("flows", &self.flows, MAX_DATA_SERVERS)?;
        Ok(flows.into_iter().map(u64::from).sum())
    }

    /// The data servers by index; all zero where there is none.
    pub fn data_servers(&self) -> Result<Vec<DataServer>, Error> {
        array("data_servers", &self.data_servers, MAX_DATA_SERVERS)
    }

    /// The pools by index; all zero where there is none.
    pub fn pools(&self) -> Result<Vec<Pool>, Error> {
        array("pools", &self.pools, MAX_POOLS)
    }

    /// The id of the route that has each route number, by number. 0 means that no route has it.
    pub fn route_ids(&self) -> Result<Vec<u64>, Error> {
        array("route_ids", &self.route_ids, TALLIED_ROUTES)
    }

    /// All services, and cluster addresses (port 0).
    pub fn services(&self) -> Result<Vec<(ServiceKey, Service)>, Error> {
        entries("services", &self.services)
    }
}

fn no_memory() -> Error {
    map_error("tcbs", "no memory for a copy of it")
}

/// All elements of an array map, in their order, by one call.
pub(crate) fn array<V: FromBytes + IntoBytes>(
    name: &'static str,
    map: &MapHandle,
    elements: u32,
) -> Result<Vec<V>, Error> {
    let mut keys = vec![0u32; elements as usize];
    let values = V::new_vec_zeroed(elements as usize);
    let mut values = values.map_err(|_| map_error(name, "no memory for a copy of it"))?;
    let copied = sys::copy_elements(map.as_fd(), None, &mut keys, &mut values);
    copied.map_err(|error| map_error(name, error))?;
    Ok(values)
}
