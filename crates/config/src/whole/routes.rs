//! Checks pools and routes: names that do not exist, duplicates, limits, and what `split` allows.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use toml::Spanned;

use crate::reading::document::suggestion;
use crate::reading::field::Parsed;
use crate::reading::problem::Problem;
use crate::reading::report::Report;
use crate::service::host::HostPattern;
use crate::service::{self, Split, Targets};
use crate::values::name::PoolName;

/// The largest number of pools, all services together, from `bpf/abi/settings.h`. The nodes of each service count as one.
const MAX_POOLS: usize = baton_abi::MAX_POOLS as usize;
/// The largest number of routes, all services together.
const MAX_ROUTES: usize = 1024;
/// The largest number of different host patterns, all services together.
const MAX_HOSTS: usize = 63;

/// Reports what is wrong between services, pools and routes.
pub(super) fn check(report: &mut Report<'_>, services: &[service::Draft]) {
    limits(report, services);
    for service in services {
        twice(report, service);
        pools_without_a_route(report, service);
        if service.split == Some(Split::Ack) {
            decided_too_early(report, service);
        }
    }
}

/// The index of the pool that each route of a service, and its large content, names. Reports names of pools
/// that do not exist.
pub(super) fn targets(report: &mut Report<'_>, service: &service::Draft) -> Targets {
    let routes = service.routes.iter().map(|route| route.pool.as_ref());
    Targets {
        routes: routes.map(|name| index(report, service, name?)).collect(),
        large: large_pool(service).and_then(|name| index(report, service, name)),
    }
}

fn large_pool(service: &service::Draft) -> Option<&Spanned<PoolName>> {
    match &service.large {
        Parsed::Right(large) => large.get_ref().pool.as_ref(),
        Parsed::Absent | Parsed::Wrong => None,
    }
}

fn index(
    report: &mut Report<'_>,
    service: &service::Draft,
    name: &Spanned<PoolName>,
) -> Option<usize> {
    let known: Vec<Option<&str>> = (service.pools.iter())
        .map(|pool| Some(pool.name.as_ref()?.get_ref().as_str()))
        .collect();
    let wanted = name.get_ref().as_str();
    let index = known.iter().position(|name| *name == Some(wanted));
    // A pool whose name could not be read may be the pool that is looked for.
    if index.is_none() && !known.contains(&None) {
        let known: Vec<&str> = known.iter().copied().flatten().collect();
        let remedy = match known.is_empty() {
            true => "add a [[service.pool]] with this name".to_owned(),
            false => suggestion(wanted, &known),
        };
        report.error(
            name.span(),
            Problem::new(format!("this service has no pool \"{wanted}\""), remedy),
        );
    }
    index
}

fn limits(report: &mut Report<'_>, services: &[service::Draft]) {
    let pools: Vec<_> = services.iter().flat_map(|one| &one.pools).collect();
    let most = MAX_POOLS.saturating_sub(services.len());
    if let Some(pool) = pools.get(most) {
        let most = too_many("pools", pools.len(), most);
        report.error(
            pool.header.clone(),
            Problem::new(most, "let routes share pools, or run a second cluster"),
        );
    }
    let routes: Vec<_> = services.iter().flat_map(|one| &one.routes).collect();
    if let Some(route) = routes.get(MAX_ROUTES) {
        let most = too_many("routes", routes.len(), MAX_ROUTES);
        report.error(
            route.header.clone(),
            Problem::new(most, "use shorter paths, or run a second cluster"),
        );
    }
    let hosts = routes.iter().filter_map(|route| match &route.host {
        Parsed::Right(host) => Some(host),
        Parsed::Absent | Parsed::Wrong => None,
    });
    let mut seen: HashSet<&HostPattern> = HashSet::new();
    let different: Vec<_> = hosts.filter(|host| seen.insert(host.get_ref())).collect();
    if let Some(host) = different.get(MAX_HOSTS) {
        let most = too_many("different hosts in routes", different.len(), MAX_HOSTS);
        report.error(
            host.span(),
            Problem::new(
                most,
                "put some under one \"*.\" host, or run a second cluster",
            ),
        );
    }
}

fn too_many(what: &str, count: usize, most: usize) -> String {
    format!("there are {count} {what}, the most is {most}")
}

fn twice(report: &mut Report<'_>, service: &service::Draft) {
    let names = service.pools.iter().filter_map(|pool| pool.name.as_ref());
    super::unique::twice(
        report,
        "the pool name",
        names,
        "give every pool of a service its own name",
    );
    #[expect(
        clippy::mutable_key_type,
        reason = "an expression is hashed and compared by its text"
    )]
    let mut taken: HashMap<_, Range<usize>> = HashMap::new();
    for route in &service.routes {
        let Some(matched) = route.matches() else {
            continue;
        };
        let Some(first) = taken.get(&matched) else {
            taken.insert(matched, route.place());
            continue;
        };
        let (host, path, conditions) = matched;
        let line = report.line(first);
        let (with, change) = match conditions.is_empty() {
            true => ("", "its host or path"),
            false => (" with the same conditions", "its host, path or conditions"),
        };
        report.error(
            route.place(),
            Problem::new(
                format!("\"{host}{path}\" has a route{with} already, on line {line}"),
                format!("remove one of the two, or change {change}"),
            ),
        );
    }
}

fn pools_without_a_route(report: &mut Report<'_>, service: &service::Draft) {
    let targets: Option<Vec<_>> = service
        .routes
        .iter()
        .map(|route| Some(route.pool.as_ref()?.get_ref()))
        .collect();
    // A route whose pool could not be read may lead to any of the pools.
    let Some(mut targets) = targets else { return };
    if matches!(service.large, Parsed::Wrong) {
        return;
    }
    targets.extend(large_pool(service).map(Spanned::get_ref));
    for pool in &service.pools {
        if let Some(name) = &pool.name
            && !targets.contains(&name.get_ref())
        {
            report.warning(
                name.span(),
                Problem::new(
                    format!("no route leads to the pool \"{name}\""),
                    "add a [[service.route]] with this pool, or remove it",
                ),
            );
        }
    }
}

/// Reports policies, size classes and routes that need the request, in a service with `split = "ack"`. At the
/// end of the handshake no request has been read.
fn decided_too_early(report: &mut Report<'_>, service: &service::Draft) {
    for policy in service.policies_by_request() {
        let remedy = "remove split, or choose \"client\", \"least-loaded\" or another policy";
        let what = format!("policy \"{}\"", policy.get_ref());
        report.error(policy.span(), too_early(&what, remedy));
    }
    if let Parsed::Right(large) = &service.large {
        let remedy = "remove split, or large";
        report.error(large.get_ref().header.clone(), too_early("large", remedy));
    }
    if let Some(route) = service.routes.first() {
        let remedy = "remove split, or the routes of this service";
        report.error(route.header.clone(), too_early("a route", remedy));
    }
}

fn too_early(what: &str, remedy: &str) -> Problem {
    Problem::new(
        format!("{what} needs the request, and split = \"ack\" decides before it is there"),
        remedy,
    )
}
