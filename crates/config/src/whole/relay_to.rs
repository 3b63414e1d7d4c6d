//! Checks that `relay_to` names data servers of its service, and addresses that nothing else in the cluster has.

use std::net::IpAddr;

use crate::reading::field::Parsed;
use crate::reading::problem::Problem;
use crate::reading::report::Report;
use crate::sections::node;
use crate::service::{self, Nodes};

/// Reports names in `relay_to` that are not data servers of the service, and addresses that something else has.
pub(super) fn check(
    report: &mut Report<'_>,
    services: &[service::Draft],
    members: &[Nodes],
    nodes: &[node::Draft],
) {
    for (service, members) in services.iter().zip(members) {
        let Parsed::Right(relay_to) = &service.relay_to else {
            continue;
        };
        // Members that could not be read have been reported already.
        let complete = members.own.is_some() && members.pools.iter().all(Option::is_some);
        for (name, server) in relay_to.get_ref().iter() {
            if complete && !members.known().any(|members| members.contains(name)) {
                report.error(
                    relay_to.span(),
                    Problem::new(
                        format!(
                            "relay_to names \"{name}\", which is not among the nodes of this service"
                        ),
                        "add it to nodes, or remove it here",
                    ),
                );
            }
            if let Some(what) = holder(IpAddr::V4(*server.ip()), services, nodes) {
                report.error(
                    relay_to.span(),
                    Problem::new(
                        format!("relay_to leads to {server}, which is {what}"),
                        "write the container's own address; a server on the node itself needs no relay_to",
                    ),
                );
            }
        }
    }
}

/// What else has this address, in words for an error; `None` if nothing has it.
fn holder(ip: IpAddr, services: &[service::Draft], nodes: &[node::Draft]) -> Option<&'static str> {
    let is_cluster = |service: &service::Draft| {
        let address = service.address.as_ref();
        address.is_some_and(|address| address.get_ref().ip() == ip)
    };
    let is_node = |node: &node::Draft| {
        let address = node.address.as_ref();
        address.is_some_and(|address| address.get_ref().ip() == ip)
    };
    if services.iter().any(is_cluster) {
        return Some("a cluster address");
    }
    nodes.iter().any(is_node).then_some("a node's own address")
}
