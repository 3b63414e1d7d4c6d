//! What must hold between the parts of a configuration: references, duplicates, families, limits.

mod connection_servers;
pub(crate) mod failover;
pub(crate) mod forwarding;
mod head_timeout;
pub(crate) mod keys;
mod members;
mod overflow;
mod protocol;
mod redirect;
mod relay_to;
mod resume;
mod routes;
mod unique;
mod weights;

use std::ops::Range;

use crate::reading::parsed::Parsed;
use crate::reading::report::Report;
use crate::sections::node::{Keys as NodeKeys, Node};
use crate::sections::roles::Roles;
use crate::service::keys::{Keys as ServiceKeys, Nodes};
use crate::service::{Service, Split};
use crate::values::name::NodeName;
use members::{find, members, serves, unknown_node};

/// The largest number of services, from `bpf/abi/settings.h`.
const MAX_SERVICES: usize = baton_abi::MAX_SERVICES as usize;
/// The largest number of data servers, from `bpf/abi/settings.h`.
const MAX_DATA_SERVERS: usize = baton_abi::MAX_DATA_SERVERS as usize;

/// The nodes and services, if everything about them is right. Everything that is wrong is reported.
pub(crate) fn check(
    report: &mut Report<'_>,
    own_name: &Parsed<NodeName>,
    nodes: Vec<NodeKeys>,
    services: Vec<ServiceKeys>,
) -> Option<(Vec<Node>, Vec<Service>)> {
    unique::check(report, &nodes, &services);
    limits(report, &nodes, &services);
    some_connection_server(report, &nodes);
    switches(report, &nodes);
    if let Some(name) = own_name.given()
        && find(&nodes, name.get_ref()).is_none()
    {
        report.problem(name.span(), unknown_node(name.get_ref(), &nodes));
    }
    let listed: Vec<_> = (services.iter())
        .map(|service| connection_servers::of_service(report, service, &nodes))
        .collect();
    connection_servers::same_for_each_address(report, &services, &listed);
    let members: Vec<Nodes> = (services.iter().zip(listed))
        .map(|(service, listed)| members(report, service, &nodes, listed))
        .collect();
    for (service, members) in services.iter().zip(&members) {
        weights::check(report, service, members);
        overflow::check(report, service, members);
        resume::check(report, service);
        head_timeout::check(report, service);
        protocol::check(report, service);
        dispatcher(report, &nodes, service);
    }
    relay_to::check(report, &services, &members, &nodes);
    routes::check(report, &services);
    let https_ports = redirect::check(report, &services, &members);
    let targets: Vec<_> = (services.iter())
        .map(|service| routes::targets(report, service))
        .collect();
    families(report, &nodes, &services, &members);
    weights::warn_all_zero(report, &nodes, &services, &members);
    some_service(report, &nodes, &services);

    let parts = members.into_iter().zip(targets).zip(https_ports);
    let services: Option<Vec<Service>> = (services.into_iter().zip(parts))
        .map(|(service, ((members, targets), port))| service.finish(members, targets, port))
        .collect();
    let nodes: Option<Vec<Node>> = nodes.into_iter().map(NodeKeys::finish).collect();
    Some((nodes?, services?))
}

/// Reports that there are more things than `most`, at the place of the first one that is too many.
fn at_most(
    report: &mut Report<'_>,
    what: &str,
    most: usize,
    places: &[Range<usize>],
    remedy: &str,
) {
    if let Some(place) = places.get(most) {
        let what = format!("there are {} {what}, the most is {most}", places.len());
        report.error(place.clone(), what, remedy);
    }
}

fn limits(report: &mut Report<'_>, nodes: &[NodeKeys], services: &[ServiceKeys]) {
    let remedy = "remove some, or run a second cluster";
    let places: Vec<_> = services.iter().map(|service| service.at.clone()).collect();
    at_most(report, "services", MAX_SERVICES, &places, remedy);
    let data_servers = nodes.iter().filter(|node| serves(node));
    let places: Vec<_> = data_servers.map(|node| node.at.clone()).collect();
    at_most(report, "data servers", MAX_DATA_SERVERS, &places, remedy);
}

fn some_connection_server(report: &mut Report<'_>, nodes: &[NodeKeys]) {
    // A node whose roles could not be read may be a connection server. A cluster of application nodes has an I/O server
    // instead; `whole::forwarding` checks that.
    let counts = |roles: Roles| roles.is_cs() || roles.is_io() || roles.is_app();
    if nodes.iter().all(|node| node.has(counts) == Some(false)) {
        report.error(
            None,
            "no node is a connection server",
            "add \"cs\" to the roles of a [[node]]: it answers for the cluster address",
        );
    }
}

/// Reports every switch but the first: two would have to agree on who answers for the cluster addresses.
fn switches(report: &mut Report<'_>, nodes: &[NodeKeys]) {
    let roles = nodes.iter().filter_map(|node| node.roles.given());
    let mut switches = roles.filter(|roles| roles.get_ref().is_switch());
    let first = switches.next();
    for roles in switches {
        let line = first.map_or(0, |first| report.line(&first.span()));
        report.error(
            roles.span(),
            format!("there is a switch already, on line {line}"),
            "give this node another role: this version has one switch a cluster",
        );
    }
}

/// Reports a `dispatcher` that is no node or lacks the role, or that stands beside `split = "ack"`.
fn dispatcher(report: &mut Report<'_>, nodes: &[NodeKeys], service: &ServiceKeys) {
    let Some(name) = service.dispatcher.given() else {
        return;
    };
    match find(nodes, name.get_ref()) {
        None => report.problem(name.span(), unknown_node(name.get_ref(), nodes)),
        Some(node) if node.has(Roles::is_dispatcher) == Some(false) => report.error(
            name.span(),
            format!("the node \"{name}\" is not a dispatcher"),
            "add \"dispatcher\" to its roles, or remove the key: each data server then chooses itself",
        ),
        Some(_) if service.split.get() == Some(&Split::Ack) => report.error(
            name.span(),
            "a dispatcher needs the request, and split = \"ack\" decides before it is there",
            "remove split, or the dispatcher",
        ),
        Some(_) => {}
    }
}

/// A service, its data servers, the connection servers and the switch must be of one family: the programs
/// carry a client's packet from one to the other inside one outer header.
fn families(
    report: &mut Report<'_>,
    nodes: &[NodeKeys],
    services: &[ServiceKeys],
    members: &[Nodes],
) {
    let mut reported = Vec::new();
    for (service, members) in services.iter().zip(members) {
        let Some(address) = service.address.given() else {
            continue;
        };
        if address.get_ref().ip().is_ipv6() {
            let what = "IPv6 service addresses are not supported by this version";
            report.error(address.span(), what, "use an IPv4 address");
            continue;
        }
        for node in nodes {
            let (Some(name), Some(node_address)) = (node.name.get(), node.address.given()) else {
                continue;
            };
            let serves = members.known().any(|names| names.contains(name));
            let forwards = node.has(|roles| roles.is_cs() || roles.is_switch()) == Some(true);
            let mixed = node_address.get_ref().ip().is_ipv6();
            if mixed && (serves || forwards) && !reported.contains(&name) {
                reported.push(name);
                let line = report.line(&address.span());
                report.error(
                    node_address.span(),
                    format!("this node has an IPv6 address and works for the IPv4 service on line {line}"),
                    "give a service and its nodes addresses of the same family",
                );
            }
        }
    }
}

/// Warns if there is no service. A cluster with an I/O server needs none.
fn some_service(report: &mut Report<'_>, nodes: &[NodeKeys], services: &[ServiceKeys]) {
    let has_io = (nodes.iter()).any(|node| node.has(Roles::is_io) == Some(true));
    if services.is_empty() && !has_io {
        let what = "there is no [[service]]: the cluster serves nothing";
        report.warning(None, what, "add one");
    }
}
