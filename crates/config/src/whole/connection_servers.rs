//! Checks the connection servers of services: names, and that services of one address have the same.

use super::members::{List, listed};
use crate::reading::parsed::Parsed;
use crate::reading::report::Report;
use crate::sections::node::Keys as Node;
use crate::sections::roles::Roles;
use crate::service::keys::Keys as Service;
use crate::values::members::Members;
use crate::values::name::NodeName;

const OF_SERVICE: List = List {
    role: Roles::is_cs,
    called: ("a connection server", "cs"),
    whose: "connection_servers",
    nobody: "this service has no connection server",
    default: " to use all connection servers",
    once: "list it once",
};

/// The connection servers that a service lists. Wrong names are reported. `None`: the list is wrong. `Some(None)`:
/// there is no list, so all connection servers are meant.
pub(super) fn of_service(
    report: &mut Report<'_>,
    service: &Service,
    nodes: &[Node],
) -> Option<Option<Members>> {
    match &service.connection_servers {
        Parsed::Given(names) => listed(report, names, nodes, &OF_SERVICE).map(Some),
        Parsed::Wrong => None,
        _ => Some(None),
    }
}

/// Reports services that have the same address but different `connection_servers`. ARP knows no ports, so a node that
/// answers for an address gets the packets for all its services.
pub(super) fn same_for_each_address(
    report: &mut Report<'_>,
    services: &[Service],
    connection_servers: &[Option<Option<Members>>],
) {
    let mut seen: Vec<(&Service, Vec<&str>)> = Vec::new();
    for (service, members) in services.iter().zip(connection_servers) {
        let (Some(address), Some(members)) = (service.address.get(), members) else {
            continue;
        };
        let mut names: Vec<&str> = (members.iter().flat_map(|members| members.iter()))
            .map(NodeName::as_str)
            .collect();
        names.sort_unstable();
        let same_address = |other: &Service| other.address.get() == Some(address);
        match seen.iter().find(|(other, _)| same_address(other)) {
            Some((_, others)) if *others != names => report.error(
                service.connection_servers.span().or(service.address.span()),
                "another service has this address and a different connection_servers",
                "give both the same connection_servers: who answers ARP for an address gets the packets for all its ports",
            ),
            Some(_) => {}
            None => seen.push((service, names)),
        }
    }
}
