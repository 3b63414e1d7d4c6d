//! Which pools this data server is in, and what its services are. This is for requests that pass no door.

use std::net::SocketAddrV4;

use baton_abi::{KeptRequest, Pool, ROLE_CS, Service, ServiceKey, Settings, TcbKey};
use libbpf_rs::MapHandle;

use crate::{
    DataServer, Error,
    maps::{again, element, lookup},
};

/// A second handle to the tables, for a task of its own.
pub struct OwnPools {
    services: MapHandle,
    pools: MapHandle,
    settings: MapHandle,
    kept: MapHandle,
}

impl DataServer {
    /// Opens the tables that say what this data server is to answer.
    pub fn own_pools(&self) -> Result<OwnPools, Error> {
        let (common, routing) = (&self.common, &self.routing);
        Ok(OwnPools {
            services: again("services", &common.services)?,
            pools: again("pools", &routing.pools)?,
            settings: again("settings", &common.settings)?,
            kept: again("kept_requests", &routing.kept_requests)?,
        })
    }
}

impl OwnPools {
    /// The service at this cluster address and port.
    pub fn service(&self, at: SocketAddrV4) -> Result<Option<Service>, Error> {
        lookup("services", &self.services, &ServiceKey::of(at))
    }

    /// Whether the door here has let this request in, whose response begins at `start`. This is always false on a
    /// connection server, because its table also holds what other nodes have told it.
    pub fn has_let_in(&self, key: &TcbKey, request: &[u8], start: u32) -> Result<bool, Error> {
        let settings: Settings = element("settings", &self.settings, 0)?;
        let kept: Option<KeptRequest> = lookup("kept_requests", &self.kept, key)?;
        let is_it = |kept: KeptRequest| {
            kept.response_start == start && kept.text.get(..kept.bytes.into()) == Some(request)
        };
        Ok(u32::from(settings.roles) & ROLE_CS == 0 && kept.is_some_and(is_it))
    }

    /// Whether this data server is in the pool with this index.
    pub fn is_member(&self, index: u16) -> Result<bool, Error> {
        let pool: Pool = element("pools", &self.pools, index.into())?;
        let settings: Settings = element("settings", &self.settings, 0)?;
        Ok(pool.has(settings.slot))
    }
}
