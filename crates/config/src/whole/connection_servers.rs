//! Checks the connection servers of services: names, and that services of one address have the same.

use super::members::{find, unknown_node};
use crate::reading::field::Parsed;
use crate::reading::problem::Problem;
use crate::reading::report::Report;
use crate::sections::node::{self, Roles};
use crate::service;
use crate::values::members::Members;
use crate::values::name::NodeName;

/// The connection servers that a service lists. Wrong names are reported. `None`: the list is wrong. `Some(None)`: there
/// is no list, so all connection servers are meant.
pub(super) fn of_service(
    report: &mut Report<'_>,
    service: &service::Draft,
    nodes: &[node::Draft],
) -> Option<Option<Members>> {
    let names = match &service.connection_servers {
        Parsed::Absent => return Some(None),
        Parsed::Wrong => return None,
        Parsed::Right(names) => names,
    };
    let mut good: Vec<NodeName> = Vec::new();
    for name in names.get_ref() {
        let wrong = match find(nodes, name.get_ref()) {
            None => Some(unknown_node(name.get_ref(), nodes)),
            Some(node) if node.has(Roles::is_cs) == Some(false) => Some(Problem::new(
                format!("the node \"{name}\" is not a connection server"),
                "add \"cs\" to its roles, or remove it from connection_servers",
            )),
            Some(_) if good.contains(name.get_ref()) => Some(Problem::new(
                format!("the node \"{name}\" is listed twice"),
                "list it once",
            )),
            Some(_) => None,
        };
        match wrong {
            Some(problem) => report.error(name.span(), problem),
            None => good.push(name.get_ref().clone()),
        }
    }
    if names.get_ref().is_empty() {
        let what = "this service has no connection server";
        let remedy = "name at least one, or remove the key to use all connection servers";
        report.error(names.span(), Problem::new(what, remedy));
    }
    let complete = good.len() == names.get_ref().len();
    let members = Members::new(good).filter(|_| complete)?;
    Some(Some(members))
}

/// Reports services that have the same address but different `connection_servers`. ARP knows no ports, so a node that
/// answers for an address gets the packets for all its services.
pub(super) fn same_for_each_address(
    report: &mut Report<'_>,
    services: &[service::Draft],
    connection_servers: &[Option<Option<Members>>],
) {
    let mut seen: Vec<(&service::Draft, Vec<&str>)> = Vec::new();
    for (service, members) in services.iter().zip(connection_servers) {
        let (Some(address), Some(members)) = (&service.address, members) else {
            continue;
        };
        let mut names: Vec<&str> = (members.iter().flat_map(|members| members.iter()))
            .map(NodeName::as_str)
            .collect();
        names.sort_unstable();
        let same_address = |other: &&service::Draft| {
            let other = other.address.as_ref();
            other.is_some_and(|other| other.get_ref() == address.get_ref())
        };
        match seen.iter().find(|(other, _)| same_address(other)) {
            Some((_, others)) if *others != names => report.error(
                service.connection_servers.span().or(Some(address.span())),
                Problem::new(
                    "another service has this address and a different connection_servers",
                    "give both the same connection_servers: who answers ARP for an address gets the packets for all its ports",
                ),
            ),
            Some(_) => {}
            None => seen.push((service, names)),
        }
    }
}
