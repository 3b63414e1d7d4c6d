//! Maps as typed values: keys and values are the ABI's structs, never bytes.

use std::os::fd::OwnedFd;

use libbpf_rs::{ErrorKind, MapCore as _, MapFlags, MapHandle};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::Error;

/// The maps of every node.
pub(crate) struct CommonMaps {
    pub settings: MapHandle,
    pub counters: MapHandle,
    pub services: MapHandle,
    pub stale_senders: MapHandle,
    pub refused_nodes: MapHandle,
    pub peer_keys: MapHandle,
    pub data_servers: MapHandle,
    pub channels: MapHandle,
    pub send_buffer: MapHandle,
}

/// A second handle to a program, for a task of its own. `name` says in an error what the handle is needed for.
pub(crate) fn again_program(name: &'static str, program: &OwnedFd) -> Result<OwnedFd, Error> {
    (program.try_clone()).map_err(|error| map_error(name, error))
}

/// A second handle to a map, for a task of its own.
pub(crate) fn again(name: &'static str, map: &MapHandle) -> Result<MapHandle, Error> {
    MapHandle::try_from(map).map_err(|error| map_error(name, error))
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

/// Removes an entry that may be gone already, because it was removed meanwhile or gave way to a younger one. Returns
/// whether it was there.
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

/// Reads an element of an array map, which has one at every index.
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
        // An entry may have been removed since its key was read.
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
