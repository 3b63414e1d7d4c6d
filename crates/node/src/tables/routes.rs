//! Routes of the configuration, compiled and written for the program.

use std::collections::HashMap;

use anyhow::{Context, Result};
use baton_abi::{HostKey, NO_POOL, ROUTE_NUMBER_SHIFT, ROUTE_UNDECIDED, RouteKey};
use baton_config::{HostPattern, Pattern};
use baton_core::{
    routes::{Host, Leads, Route, RouteTable},
    rules::{Conditions, Matcher, Rules},
};
use baton_dataplane::{Dataplane, Lead};

use super::routing_of;

/// A service's number in the maps, and the indices of its pools in the order of the file.
pub struct Target<'a> {
    pub id: u16,
    pub service: &'a baton_config::Service,
    pub pools: Vec<u16>,
    /// The numbers of its routes, in the order of the file.
    pub numbers: Vec<u16>,
}

/// Checks that the routes of a configuration fit the maps. Everything else that can be wrong with routes is found when
/// the configuration is read.
pub fn check(services: &[baton_config::Service]) -> Result<()> {
    // Any numbers will do here that tell services, pools and routes apart.
    let numbers = |count: usize| (0..).take(count).collect::<Vec<u16>>();
    let targets: Vec<Target<'_>> = (services.iter().zip(0..))
        .map(|(service, id)| Target {
            id,
            service,
            pools: numbers(service.pools.len()),
            numbers: numbers(service.routes.len()),
        })
        .collect();
    compile(&targets).map(drop)
}

fn compile(targets: &[Target<'_>]) -> Result<RouteTable> {
    // The programs see of TLS only what a ClientHello says.
    let is_seen = |target: &&Target<'_>, (route, conditions): &(Route<'_>, Conditions)| {
        !target.service.is_tls() || route.path == b"/" && conditions.are_only_about_tls()
    };
    let mut routes = Vec::new();
    for target in targets {
        let seen = of_service(target).filter(|one| is_seen(&target, one));
        routes.extend(seen.map(|(route, _)| route));
    }
    Ok(RouteTable::compile(&routes)?)
}

/// Makes the maps hold the routes of exactly these services.
pub fn write(dataplane: &Dataplane, targets: &[Target<'_>]) -> Result<()> {
    let table = compile(targets)?;
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
    let by_number = self::leads(targets);
    let entries = table
        .entries
        .iter()
        .map(|entry| {
            let key = RouteKey::of(entry.service, entry.host.into(), &entry.path);
            Ok((
                key.context("a path is too long")?,
                value(entry.leads, &by_number)?,
            ))
        })
        .collect::<Result<Vec<_>>>()?;
    // Routes are written before hosts, because a host's number has no meaning without the host's routes.
    let routing = routing_of(dataplane)?;
    routing.set_routes(&entries)?;
    routing.set_hosts(&hosts)?;
    Ok(())
}

/// The routes of these services with their conditions, for the agent.
pub fn rules(targets: &[Target<'_>]) -> Rules {
    Rules::new(targets.iter().flat_map(of_service))
}

/// The value of an entry in the map of routes.
fn value(leads: Leads, by_number: &HashMap<u16, Lead>) -> Result<u32> {
    let undecided = if leads.has_conditions {
        ROUTE_UNDECIDED
    } else {
        0
    };
    let Some(number) = leads.pool else {
        return Ok(undecided | NO_POOL);
    };
    let lead = by_number.get(&number).context("a route leads to no pool")?;
    Ok(undecided | u32::from(lead.upper_half()) << ROUTE_NUMBER_SHIFT | u32::from(lead.pool))
}

/// Where each route leads, by the route's number.
pub fn leads(targets: &[Target<'_>]) -> HashMap<u16, Lead> {
    targets.iter().flat_map(leads_by_number).collect()
}

/// Whether some of a service's routes name hosts.
pub fn name_hosts(service: &baton_config::Service) -> bool {
    let any = |route: &baton_config::Route| matches!(route.host, HostPattern::Any);
    !service.routes.iter().all(any)
}

/// Where each route of a service leads, by the route's number. The route table is compiled with these numbers in place
/// of pools, because the entries of the map say more than the pool.
fn leads_by_number(target: &Target<'_>) -> impl Iterator<Item = (u16, Lead)> {
    let routes = target.service.routes.iter().zip(&target.numbers);
    routes.map(|(route, number)| {
        let lead = Lead {
            pool: target.pools[route.pool],
            route: *number,
            resumes: route.resume,
        };
        (*number, lead)
    })
}

fn of_service<'a>(target: &'a Target<'_>) -> impl Iterator<Item = (Route<'a>, Conditions)> {
    let routes = target.service.routes.iter().zip(&target.numbers);
    routes.map(|(route, number)| {
        let found = Route {
            service: target.id,
            host: match &route.host {
                HostPattern::Any => Host::Any,
                HostPattern::Exact(name) => Host::Name(name.as_str()),
                HostPattern::Below(name) => Host::Below(name.as_str()),
            },
            path: route.path.spelled(),
            is_conditional: !route.conditions.is_empty(),
            pool: *number,
        };
        (found, conditions(&route.conditions))
    })
}

fn conditions(of: &baton_config::Conditions) -> Conditions {
    let named = |list: &[(String, Pattern)]| {
        let one = |(name, pattern): &(String, Pattern)| (name.clone(), matcher(pattern));
        list.iter().map(one).collect()
    };
    Conditions {
        path: of.regex.as_ref().map(|regex| regex.regex().clone().into()),
        method: of.method.as_ref().map(matcher),
        headers: named(&of.header),
        cookies: named(&of.cookie),
        queries: named(&of.query),
        alpn: of.alpn.as_ref().map(matcher),
    }
}

fn matcher(pattern: &Pattern) -> Matcher {
    match pattern {
        Pattern::Exactly(text) => Matcher::Exactly(text.clone()),
        Pattern::Regex(expression) => Matcher::Regex(expression.regex().clone().into()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use baton_config::{Config, Source};

    use super::*;

    /// A configuration of so many hosts and paths. Each host inherits every path.
    fn with(hosts: usize, paths: usize) -> Config {
        let host = |n| {
            format!("[[service.route]]\nhost = \"h{n}.example\"\npath = \"/own/\"\npool = \"p\"\n")
        };
        let path = |n| format!("[[service.route]]\npath = \"/{n}/\"\npool = \"p\"\n");
        let routes: String = (0..hosts).map(host).chain((0..paths).map(path)).collect();
        let text = format!(
            "[cluster]\nkey = \"{}\"\n\
             [[node]]\nname = \"n\"\naddress = \"192.0.2.1\"\nroles = [\"cs\", \"ds\"]\n\
             [[service]]\nname = \"s\"\naddress = \"192.0.2.100\"\nport = 80\n\
             [[service.pool]]\nname = \"p\"\nnodes = [\"n\"]\n{routes}",
            "5a".repeat(32)
        );
        let source = Source {
            path: Path::new("baton.toml"),
            text: &text,
            mode: None,
        };
        let no_files = |_: &Path| Err(std::io::Error::other("names no files"));
        Config::parse(source, no_files)
            .unwrap_or_else(|error| panic!("{error}"))
            .config
    }

    #[test]
    fn what_does_not_fit_the_maps_is_told_before_it_is_tried() {
        assert!(check(&with(60, 3).services).is_ok());
        let error = check(&with(60, 150).services).err();
        let error = error.map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("the table of routes holds"), "{error}");
    }
}
