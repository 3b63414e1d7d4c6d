//! Which pools this data server is in, and what its services are: for requests that come by no door.

use std::net::SocketAddrV4;

use baton_abi::{Pool, Service, ServiceKey, Settings};
use libbpf_rs::MapHandle;

use crate::{
    Dataplane, Error,
    maps::{element, lookup, map_error, only_on_ds},
};

/// A second way to the tables, for a task of its own.
pub struct OwnPools {
    services: MapHandle,
    pools: MapHandle,
    settings: MapHandle,
}

impl Dataplane {
    /// What this data server is to answer. On a data server only.
    pub fn own_pools(&self) -> Result<OwnPools, Error> {
        let maps = &self.programs().maps;
        let handle = |name, map: &MapHandle| {
            MapHandle::try_from(map).map_err(|error| map_error(name, error))
        };
        Ok(OwnPools {
            services: handle("services", &maps.services)?,
            pools: handle("pools", only_on_ds("pools", &maps.pools)?)?,
            settings: handle("settings", &maps.settings)?,
        })
    }
}

impl OwnPools {
    /// The service at this cluster address and port.
    pub fn service(&self, at: SocketAddrV4) -> Result<Option<Service>, Error> {
        lookup("services", &self.services, &ServiceKey::of(at))
    }

    /// Whether this data server is in the pool with this index.
    pub fn is_member(&self, index: u16) -> Result<bool, Error> {
        let pool: Pool = element("pools", &self.pools, index.into())?;
        let settings: Settings = element("settings", &self.settings, 0)?;
        let word = pool.members.get(usize::from(settings.slot / 64));
        Ok(word.is_some_and(|word| word >> (settings.slot % 64) & 1 == 1))
    }
}
