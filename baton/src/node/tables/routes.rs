//! Routes of the configuration, compiled and written for the program.

use std::collections::HashMap;

use anyhow::{Context, Result};
use baton_abi::{HostKey, RouteKey};
use baton_config::HostPattern;
use baton_core::routes::{Host, Route, RouteTable};
use baton_dataplane::Dataplane;

/// A service's number in the maps, and the indices of its pools in the order of the file.
pub struct Target<'a> {
    pub id: u16,
    pub service: &'a baton_config::Service,
    pub pools: Vec<u16>,
    /// The numbers of its routes, in the order of the file.
    pub numbers: Vec<u16>,
}

/// Makes the maps hold the routes of exactly these services.
pub fn write(dataplane: &Dataplane, targets: &[Target<'_>]) -> Result<()> {
    let routes: Vec<Route<'_>> = targets.iter().flat_map(of_service).collect();
    let table = RouteTable::compile(&routes)?;
    let hosts = table
        .hosts
        .iter()
        .map(|host| {
            let key = if host.wildcard {
                HostKey::below(&host.name)
            } else {
                HostKey::exact(&host.name)
            };
            let key = key.with_context(|| format!("host {} is too long", host.name))?;
            Ok((key, host.number.into()))
        })
        .collect::<Result<Vec<_>>>()?;
    let pools: HashMap<u16, u16> = targets.iter().flat_map(pools_by_number).collect();
    let entries = table
        .entries
        .iter()
        .map(|entry| {
            let key = RouteKey::of(entry.service, entry.host.into(), &entry.path);
            let number = entry.pool;
            let pool = pools.get(&number).context("a route of no pool")?;
            let value = u32::from(number) << 16 | u32::from(*pool);
            Ok((key.context("a path is too long")?, value))
        })
        .collect::<Result<Vec<_>>>()?;
    // A host's number means something only with its routes.
    dataplane.set_routes(&entries)?;
    dataplane.set_hosts(&hosts)?;
    Ok(())
}

/// Whether some of a service's routes name hosts.
pub fn name_hosts(service: &baton_config::Service) -> bool {
    let any = |route: &baton_config::Route| matches!(route.host, HostPattern::Any);
    !service.routes.iter().all(any)
}

/// Entries are to say more than their pool, so they are compiled with the number of their route instead.
fn pools_by_number(target: &Target<'_>) -> impl Iterator<Item = (u16, u16)> {
    let routes = target.service.routes.iter().zip(&target.numbers);
    routes.map(|(route, number)| (*number, target.pools[route.pool]))
}

fn of_service<'a>(target: &'a Target<'_>) -> impl Iterator<Item = Route<'a>> {
    let routes = target.service.routes.iter().zip(&target.numbers);
    routes.map(|(route, number)| Route {
        service: target.id,
        host: match &route.host {
            HostPattern::Any => Host::Any,
            HostPattern::Exact(name) => Host::Name(name.as_str()),
            HostPattern::Below(name) => Host::Below(name.as_str()),
        },
        path: route.path.as_str().as_bytes(),
        pool: *number,
    })
}
