//! Checks pools and routes: names that do not exist, duplicates, limits, and what `split` allows.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use toml::Spanned;

use crate::reading::document::suggestion;
use crate::reading::report::Report;
use crate::service::Split;
use crate::service::host::HostPattern;
use crate::service::keys::{Keys, Targets};
use crate::values::name::PoolName;

/// The largest number of pools, all services together, from `bpf/abi/settings.h`. The nodes of each service count as
/// one.
const MAX_POOLS: usize = baton_abi::MAX_POOLS as usize;
/// The largest number of routes, all services together.
const MAX_ROUTES: usize = 1024;
/// The largest number of different host patterns, all services together.
const MAX_HOSTS: usize = 63;

/// Reports what is wrong between services, pools and routes.
pub(super) fn check(report: &mut Report<'_>, services: &[Keys]) {
    limits(report, services);
    for service in services {
        twice(report, service);
        pools_without_a_route(report, service);
        if service.split.get() == Some(&Split::Ack) {
            decided_too_early(report, service);
        }
    }
}

/// The index of the pool that each route of a service, and its large content, names. Reports names of pools
/// that do not exist.
pub(super) fn targets(report: &mut Report<'_>, service: &Keys) -> Targets {
    let routes = service.route.iter().map(|route| route.pool.given());
    Targets {
        routes: routes.map(|name| index(report, service, name?)).collect(),
        large: large_pool(service).and_then(|name| index(report, service, name)),
    }
}

fn large_pool(service: &Keys) -> Option<&Spanned<PoolName>> {
    service.large.get()?.pool.given()
}

fn index(report: &mut Report<'_>, service: &Keys, name: &Spanned<PoolName>) -> Option<usize> {
    let pools = service.pool.iter();
    let known: Vec<Option<&str>> = pools
        .map(|pool| pool.name.get().map(PoolName::as_str))
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
            format!("this service has no pool \"{wanted}\""),
            remedy,
        );
    }
    index
}

fn limits(report: &mut Report<'_>, services: &[Keys]) {
    let pools = services.iter().flat_map(|one| one.pool.items());
    let routes = services.iter().flat_map(|one| one.route.items());
    let mut seen: HashSet<&HostPattern> = HashSet::new();
    let hosts = routes.clone().filter_map(|route| route.host.given());
    let hosts = hosts.filter(|host| seen.insert(host.get_ref()));
    let most_pools = MAX_POOLS.saturating_sub(services.len());
    for (what, most, places, remedy) in [
        (
            "pools",
            most_pools,
            pools.map(|pool| pool.at.clone()).collect::<Vec<_>>(),
            "let routes share pools, or run a second cluster",
        ),
        (
            "routes",
            MAX_ROUTES,
            routes.map(|route| route.at.clone()).collect(),
            "use shorter paths, or run a second cluster",
        ),
        (
            "different hosts in routes",
            MAX_HOSTS,
            hosts.map(Spanned::span).collect(),
            "put some under one \"*.\" host, or run a second cluster",
        ),
    ] {
        super::at_most(report, what, most, &places, remedy);
    }
}

fn twice(report: &mut Report<'_>, service: &Keys) {
    let names = service.pool.iter().filter_map(|pool| pool.name.given());
    let remedy = "give every pool of a service its own name";
    super::unique::twice(report, "the pool name", names, remedy);
    #[expect(
        clippy::mutable_key_type,
        reason = "an expression is hashed and compared by its text"
    )]
    let mut taken: HashMap<_, Range<usize>> = HashMap::new();
    for route in service.route.items() {
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
            format!("\"{host}{path}\" has a route{with} already, on line {line}"),
            format!("remove one of the two, or change {change}"),
        );
    }
}

fn pools_without_a_route(report: &mut Report<'_>, service: &Keys) {
    let routes = service.route.iter();
    let targets: Option<Vec<_>> = routes.map(|route| route.pool.get()).collect();
    // A route whose pool could not be read may lead to any of the pools.
    let Some(mut targets) = targets else { return };
    if service.large.is_wrong() {
        return;
    }
    targets.extend(large_pool(service).map(Spanned::get_ref));
    for name in service.pool.iter().filter_map(|pool| pool.name.given()) {
        if !targets.contains(&name.get_ref()) {
            report.warning(
                name.span(),
                format!("no route leads to the pool \"{name}\""),
                "add a [[service.route]] with this pool, or remove it",
            );
        }
    }
}

/// Reports policies, size classes and routes that need the request, in a service with `split = "ack"`. At the
/// end of the handshake no request has been read.
fn decided_too_early(report: &mut Report<'_>, service: &Keys) {
    let mut early = |place: Option<Range<usize>>, what: &str, remedy: &str| {
        if place.is_some() {
            report.error(
                place,
                format!("{what} needs the request, and split = \"ack\" decides before it is there"),
                format!("remove split, or {remedy}"),
            );
        }
    };
    for policy in service.policies_by_request() {
        let what = format!("policy \"{}\"", policy.get_ref());
        let remedy = "choose \"client\", \"least-loaded\" or another policy";
        early(Some(policy.span()), &what, remedy);
    }
    early(service.large.span(), "large", "large");
    let route = service.route.items().first().map(|route| route.at.clone());
    early(route, "a route", "the routes of this service");
}
