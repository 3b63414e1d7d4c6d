//! What must hold between the parts of a configuration: references, duplicates, families, limits.

mod connection_servers;
pub(crate) mod failover;
pub(crate) mod forwarding;
mod head_timeout;
pub(crate) mod keys;
mod members;
mod overflow;
mod protocol;
mod relay_to;
mod resume;
mod routes;
mod unique;
mod weights;

use toml::Spanned;

use crate::reading::field::Parsed;
use crate::reading::problem::Problem;
use crate::reading::report::Report;
use crate::sections::node::{self, Node, Roles};
use crate::service::{self, Nodes, Service};
use crate::values::name::NodeName;
use members::{find, members, serves, unknown_node};

/// The largest number of services, from `bpf/abi/settings.h`.
const MAX_SERVICES: usize = baton_abi::MAX_SERVICES as usize;
/// The largest number of data servers, from `bpf/abi/settings.h`.
const MAX_DATA_SERVERS: usize = baton_abi::MAX_DATA_SERVERS as usize;

/// The nodes and services, if everything about them is right. Everything that is wrong is reported.
pub(crate) fn check(
    report: &mut Report<'_>,
    own_name: Option<&Spanned<NodeName>>,
    nodes: Vec<node::Draft>,
    services: Vec<service::Draft>,
) -> Option<(Vec<Node>, Vec<Service>)> {
    unique::check(report, &nodes, &services);
    limits(report, &nodes, &services);
    some_connection_server(report, &nodes);
    switches(report, &nodes);
    if let Some(name) = own_name
        && find(&nodes, name.get_ref()).is_none()
    {
        report.error(name.span(), unknown_node(name.get_ref(), &nodes));
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
    }
    relay_to::check(report, &services, &members, &nodes);
    routes::check(report, &services);
    dispatchers(report, &nodes, &services);
    let targets: Vec<_> = services
        .iter()
        .map(|service| routes::targets(report, service))
        .collect();
    families(report, &nodes, &services, &members);
    weights::warn_all_zero(report, &nodes, &services, &members);
    some_service(report, &nodes, &services);

    let services: Option<Vec<Service>> = services
        .into_iter()
        .zip(members.into_iter().zip(targets))
        .map(|(service, (members, targets))| service.finish(members, targets))
        .collect();
    let nodes: Option<Vec<Node>> = nodes.into_iter().map(node::Draft::finish).collect();
    Some((nodes?, services?))
}

fn limits(report: &mut Report<'_>, nodes: &[node::Draft], services: &[service::Draft]) {
    if let Some(service) = services.get(MAX_SERVICES) {
        report.error(
            service.header.clone(),
            Problem::new(
                format!(
                    "there are {} services, the most is {MAX_SERVICES}",
                    services.len()
                ),
                "remove some, or run a second cluster",
            ),
        );
    }
    let data_servers: Vec<_> = nodes.iter().filter(|node| serves(node)).collect();
    if let Some(node) = data_servers.get(MAX_DATA_SERVERS) {
        report.error(
            node.header.clone(),
            Problem::new(
                format!(
                    "there are {} data servers, the most is {MAX_DATA_SERVERS}",
                    data_servers.len()
                ),
                "remove some, or run a second cluster",
            ),
        );
    }
}

fn some_connection_server(report: &mut Report<'_>, nodes: &[node::Draft]) {
    // A node whose roles could not be read may be a connection server. A cluster of application nodes has an I/O server
    // instead; `whole::forwarding` checks that.
    let counts = |roles: Roles| roles.is_cs() || roles.is_io() || roles.is_app();
    if nodes.iter().all(|node| node.has(counts) == Some(false)) {
        report.error(
            None,
            Problem::new(
                "no node is a connection server",
                "add \"cs\" to the roles of a [[node]]: it answers for the cluster address",
            ),
        );
    }
}

/// Reports every switch but the first: two would have to agree on who answers for the cluster addresses.
fn switches(report: &mut Report<'_>, nodes: &[node::Draft]) {
    let mut switches = nodes
        .iter()
        .filter_map(|node| node.roles.as_ref())
        .filter(|roles| roles.get_ref().is_switch());
    let first = switches.next();
    for roles in switches {
        let line = first.map_or(0, |first| report.line(&first.span()));
        report.error(
            roles.span(),
            Problem::new(
                format!("there is a switch already, on line {line}"),
                "give this node another role: this version has one switch a cluster",
            ),
        );
    }
}

/// Reports a `dispatcher` that is no node or lacks the role, or that stands beside `split = "ack"`.
fn dispatchers(report: &mut Report<'_>, nodes: &[node::Draft], services: &[service::Draft]) {
    for service in services {
        let Parsed::Right(name) = &service.dispatcher else {
            continue;
        };
        match find(nodes, name.get_ref()) {
            None => report.error(name.span(), unknown_node(name.get_ref(), nodes)),
            Some(node) if node.has(Roles::is_dispatcher) == Some(false) => report.error(
                name.span(),
                Problem::new(
                    format!("the node \"{}\" is not a dispatcher", name.get_ref()),
                    "add \"dispatcher\" to its roles, or remove the key: each data server \
                     then chooses itself",
                ),
            ),
            Some(_) if service.split == Some(service::Split::Ack) => report.error(
                name.span(),
                Problem::new(
                    "a dispatcher needs the request, and split = \"ack\" decides before it is there",
                    "remove split, or the dispatcher",
                ),
            ),
            Some(_) => {}
        }
    }
}

/// A service, its data servers, the connection servers and the switch must be of one family: the programs
/// carry a client's packet from one to the other inside one outer header.
fn families(
    report: &mut Report<'_>,
    nodes: &[node::Draft],
    services: &[service::Draft],
    members: &[Nodes],
) {
    let mut reported = Vec::new();
    for (service, members) in services.iter().zip(members) {
        let Some(address) = &service.address else {
            continue;
        };
        if address.get_ref().ip().is_ipv6() {
            report.error(
                address.span(),
                Problem::new(
                    "IPv6 service addresses are not supported by this version",
                    "use an IPv4 address",
                ),
            );
            continue;
        }
        for node in nodes {
            let (Some(name), Some(node_address)) = (&node.name, &node.address) else {
                continue;
            };
            let serves = members.known().any(|names| names.contains(name.get_ref()));
            let forwards = node.has(|roles| roles.is_cs() || roles.is_switch()) == Some(true);
            let mixed = node_address.get_ref().ip().is_ipv6();
            if mixed && (serves || forwards) && !reported.contains(&name.get_ref()) {
                reported.push(name.get_ref());
                let line = report.line(&address.span());
                report.error(
                    node_address.span(),
                    Problem::new(
                        format!(
                            "this node has an IPv6 address and works for the IPv4 service on line {line}"
                        ),
                        "give a service and its nodes addresses of the same family",
                    ),
                );
            }
        }
    }
}

/// Warns if there is no service. A cluster with an I/O server needs none.
fn some_service(report: &mut Report<'_>, nodes: &[node::Draft], services: &[service::Draft]) {
    let has_io = nodes
        .iter()
        .any(|node| node.has(Roles::is_io) == Some(true));
    if services.is_empty() && !has_io {
        report.warning(
            None,
            Problem::new(
                "there is no [[service]]: the cluster serves nothing",
                "add one",
            ),
        );
    }
}
