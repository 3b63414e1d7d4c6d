//! Checks that `relay_to` names data servers of its service, and addresses that nothing else in the cluster has.

use std::net::IpAddr;

use crate::reading::report::Report;
use crate::sections::node::Keys as Node;
use crate::service::keys::{Keys as Service, Nodes};

/// Reports names in `relay_to` that are not data servers of the service, and addresses that something else has.
pub(super) fn check(
    report: &mut Report<'_>,
    services: &[Service],
    members: &[Nodes],
    nodes: &[Node],
) {
    for (service, members) in services.iter().zip(members) {
        let Some(relay_to) = service.relay_to.given() else {
            continue;
        };
        // Members that could not be read have been reported already.
        let complete = members.own.is_some() && members.pools.iter().all(Option::is_some);
        for (name, server) in relay_to.get_ref().iter() {
            if complete && !members.known().any(|members| members.contains(name)) {
                let what = format!(
                    "relay_to names \"{name}\", which is not among the nodes of this service"
                );
                report.error(relay_to.span(), what, "add it to nodes, or remove it here");
            }
            if let Some(what) = holder(IpAddr::V4(*server.ip()), services, nodes) {
                report.error(
                    relay_to.span(),
                    format!("relay_to leads to {server}, which is {what}"),
                    "write the container's own address; a server on the node itself needs no relay_to",
                );
            }
        }
    }
}

/// What else has this address, in words for an error; `None` if nothing has it.
fn holder(ip: IpAddr, services: &[Service], nodes: &[Node]) -> Option<&'static str> {
    let mut of_services = services.iter().filter_map(|service| service.address.get());
    if of_services.any(|address| address.ip() == ip) {
        return Some("a cluster address");
    }
    let mut of_nodes = nodes.iter().filter_map(|node| node.address.get());
    let is_node = of_nodes.any(|address| address.ip() == ip);
    is_node.then_some("a node's own address")
}
