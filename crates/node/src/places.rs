//! Services by their addresses.

use std::net::{IpAddr, SocketAddrV4};

use anyhow::{Result, bail};
use baton_wire::Endpoint;

/// A service with its address and port.
pub type Placed<'a> = (SocketAddrV4, &'a baton_config::Service);

/// A cluster address and port in the form that messages and membership use.
pub fn endpoint(at: SocketAddrV4) -> Endpoint {
    at.into()
}

/// The address and port of a service. An IPv6 address is an error.
pub fn service_at(service: &baton_config::Service) -> Result<SocketAddrV4> {
    match service.address.ip() {
        IpAddr::V4(address) => Ok(SocketAddrV4::new(address, service.port.get())),
        IpAddr::V6(_) => bail!(
            "service {}: its address must be IPv4 in this version",
            service.name
        ),
    }
}

/// Services of a configuration with their places, in the order of the file.
pub fn services_with_places<'a>(
    services: impl Iterator<Item = &'a baton_config::Service>,
) -> Result<Vec<Placed<'a>>> {
    services
        .map(|service| Ok((service_at(service)?, service)))
        .collect()
}
