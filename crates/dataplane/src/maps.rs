//! Maps as typed values: keys and values are the ABI's structs, never bytes.

use std::os::fd::OwnedFd;

use baton_abi::{Counters, DataServer, Service, ServiceKey, Settings, Tcb, TcbKey};
use libbpf_rs::{ErrorKind, MapCore as _, MapFlags, MapHandle};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::Error;

pub(crate) struct Maps {
    pub settings: MapHandle,
    pub counters: MapHandle,
    pub services: MapHandle,
    pub stale_senders: MapHandle,
    pub refused_nodes: MapHandle,
    pub peer_keys: MapHandle,
    pub data_servers: MapHandle,
    pub peers: Option<MapHandle>,
    pub senders: Option<MapHandle>,
    pub inboxes: Option<MapHandle>,
    pub channels: MapHandle,
    pub outbox: MapHandle,
    pub rings: Option<MapHandle>,
    pub seen_heads: Option<MapHandle>,
    pub responses: Option<MapHandle>,
    pub doors: Option<MapHandle>,
    pub doors_begun: Option<MapHandle>,
    pub door_tallies: Option<MapHandle>,
    pub keeping: Option<MapHandle>,
    pub have_read: Option<MapHandle>,
    pub early: Option<MapHandle>,
    pub asking: Option<MapHandle>,
    pub places: Option<MapHandle>,
    pub pools: Option<MapHandle>,
    pub hosts: Option<MapHandle>,
    pub routes: Option<MapHandle>,
    pub large: Option<MapHandle>,
    pub choices: Option<MapHandle>,
    pub tallies: Option<MapHandle>,
    pub route_ids: Option<MapHandle>,
    pub tcbs: Option<MapHandle>,
    pub flows: Option<MapHandle>,
    /// A variable of the program's.
    pub hold: Option<MapHandle>,
    pub held: Option<MapHandle>,
    pub answers: Option<MapHandle>,
    pub resting: Option<MapHandle>,
    pub kept_requests: Option<MapHandle>,
    pub orphans: Option<MapHandle>,
    /// Held only: without a holder the kernel empties it.
    pub _once_more: Option<MapHandle>,
}

impl Maps {
    pub fn settings(&self) -> Result<Settings, Error> {
        element("settings", &self.settings, 0)
    }

    pub fn set_settings(&self, settings: &Settings) -> Result<(), Error> {
        update("settings", &self.settings, &0u32, settings)
    }

    pub fn counters(&self) -> Result<Counters, Error> {
        let mut sum = Counters::default();
        for cpu in per_cpu("counters", &self.counters, 0)? {
            let counters: Counters = read("counters", &cpu)?;
            for (total, value) in sum.value.iter_mut().zip(counters.value) {
                *total += value;
            }
        }
        Ok(sum)
    }

    pub fn services(&self) -> Result<Vec<(ServiceKey, Service)>, Error> {
        entries("services", &self.services)
    }

    pub fn set_service(&self, key: &ServiceKey, service: &Service) -> Result<(), Error> {
        update("services", &self.services, key, service)
    }

    pub fn remove_service(&self, key: &ServiceKey) -> Result<(), Error> {
        remove("services", &self.services, key)
    }

    pub fn data_server(&self, index: u16) -> Result<DataServer, Error> {
        element("data_servers", &self.data_servers, index.into())
    }

    pub fn set_data_server(&self, index: u16, server: &DataServer) -> Result<(), Error> {
        update(
            "data_servers",
            &self.data_servers,
            &u32::from(index),
            server,
        )
    }

    pub fn set_choices(&self, first: u32, choices: &[u16]) -> Result<(), Error> {
        let map = only_on_cs("choices", &self.choices)?;
        let count = u32::try_from(choices.len()).map_err(|error| map_error("choices", error))?;
        if count == 0 {
            return Ok(());
        }
        let keys: Vec<u32> = (first..first + count).collect();
        map.update_batch(
            keys.as_bytes(),
            choices.as_bytes(),
            count,
            MapFlags::ANY,
            MapFlags::ANY,
        )
        .map_err(|error| map_error("choices", error))
    }

    pub fn flows(&self, index: u16) -> Result<u32, Error> {
        element("flows", only_on_cs("flows", &self.flows)?, index.into())
    }

    pub fn set_flows(&self, index: u16, flows: u32) -> Result<(), Error> {
        update(
            "flows",
            only_on_cs("flows", &self.flows)?,
            &u32::from(index),
            &flows,
        )
    }

    pub fn tcbs(&self) -> Result<Vec<(TcbKey, Tcb)>, Error> {
        entries("tcbs", only_on_cs("tcbs", &self.tcbs)?)
    }

    pub fn tcb(&self, key: &TcbKey) -> Result<Option<Tcb>, Error> {
        lookup("tcbs", only_on_cs("tcbs", &self.tcbs)?, key)
    }

    pub fn set_tcb(&self, key: &TcbKey, tcb: &Tcb) -> Result<(), Error> {
        update("tcbs", only_on_cs("tcbs", &self.tcbs)?, key, tcb)
    }

    pub fn tcb_capacity(&self) -> u32 {
        self.tcbs.as_ref().map_or(0, |map| map.max_entries())
    }
}

/// A second hold on a program of a connection server; `name` is what it is needed for.
pub(crate) fn program_of_cs(
    name: &'static str,
    program: &Option<OwnedFd>,
) -> Result<OwnedFd, Error> {
    let program = program.as_ref();
    let program = program.ok_or_else(|| map_error(name, "exists on a connection server only"))?;
    (program.try_clone()).map_err(|error| map_error(name, error))
}

/// A second hold on a map, for a task of its own.
pub(crate) fn again(name: &'static str, map: &MapHandle) -> Result<MapHandle, Error> {
    MapHandle::try_from(map).map_err(|error| map_error(name, error))
}

/// The same of a map that only a connection server has,
pub(crate) fn again_on_cs(name: &'static str, map: &Option<MapHandle>) -> Result<MapHandle, Error> {
    again(name, only_on_cs(name, map)?)
}

/// or a data server.
pub(crate) fn again_on_ds(name: &'static str, map: &Option<MapHandle>) -> Result<MapHandle, Error> {
    again(name, only_on_ds(name, map)?)
}

pub(crate) fn only_on_cs<'a>(
    name: &'static str,
    map: &'a Option<MapHandle>,
) -> Result<&'a MapHandle, Error> {
    map.as_ref()
        .ok_or_else(|| map_error(name, "exists on a connection server only"))
}

pub(crate) fn only_on_ds<'a>(
    name: &'static str,
    map: &'a Option<MapHandle>,
) -> Result<&'a MapHandle, Error> {
    map.as_ref()
        .ok_or_else(|| map_error(name, "exists on a data server only"))
}

pub(crate) fn update<K: IntoBytes + Immutable, V: IntoBytes + Immutable>(
    name: &'static str,
    map: &MapHandle,
    key: &K,
    value: &V,
) -> Result<(), Error> {
    map.update(key.as_bytes(), value.as_bytes(), MapFlags::ANY)
        .map_err(|error| map_error(name, error))
}

pub(crate) fn remove<K: IntoBytes + Immutable>(
    name: &'static str,
    map: &MapHandle,
    key: &K,
) -> Result<(), Error> {
    map.delete(key.as_bytes())
        .map_err(|error| map_error(name, error))
}

/// The same of what may have been removed meanwhile, or given way to something younger. Whether it was there.
pub(crate) fn forget<K: IntoBytes + Immutable + ?Sized>(
    name: &'static str,
    map: &MapHandle,
    key: &K,
) -> Result<bool, Error> {
    match map.delete(key.as_bytes()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(map_error(name, error)),
    }
}

pub(crate) fn lookup<K: IntoBytes + Immutable, V: FromBytes>(
    name: &'static str,
    map: &MapHandle,
    key: &K,
) -> Result<Option<V>, Error> {
    let bytes = map
        .lookup(key.as_bytes(), MapFlags::ANY)
        .map_err(|error| map_error(name, error))?;
    bytes.map(|bytes| read(name, &bytes)).transpose()
}

/// An element of an array map, which always has one.
pub(crate) fn element<V: FromBytes>(
    name: &'static str,
    map: &MapHandle,
    index: u32,
) -> Result<V, Error> {
    lookup(name, map, &index)?.ok_or_else(|| map_error(name, format!("has no element {index}")))
}

pub(crate) fn entries<K: FromBytes, V: FromBytes>(
    name: &'static str,
    map: &MapHandle,
) -> Result<Vec<(K, V)>, Error> {
    let mut all = Vec::new();
    for key in map.keys() {
        // One that was removed since its key was read is no entry.
        if let Some(value) = map
            .lookup(&key, MapFlags::ANY)
            .map_err(|error| map_error(name, error))?
        {
            all.push((read(name, &key)?, read(name, &value)?));
        }
    }
    Ok(all)
}

pub(crate) fn per_cpu(
    name: &'static str,
    map: &MapHandle,
    index: u32,
) -> Result<Vec<Vec<u8>>, Error> {
    map.lookup_percpu(index.as_bytes(), MapFlags::ANY)
        .map_err(|error| map_error(name, error))?
        .ok_or_else(|| map_error(name, format!("has no element {index}")))
}

pub(crate) fn read<V: FromBytes>(name: &'static str, bytes: &[u8]) -> Result<V, Error> {
    V::read_from_prefix(bytes)
        .map(|(value, _)| value)
        .map_err(|_| {
            map_error(
                name,
                format!("an element of {} bytes is too short", bytes.len()),
            )
        })
}

pub(crate) fn map_error(map: &'static str, error: impl std::fmt::Display) -> Error {
    Error::Map {
        map,
        reason: error.to_string(),
    }
}
