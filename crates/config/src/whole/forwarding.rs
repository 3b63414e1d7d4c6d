//! Checks `[forwarding]` against the nodes and services.

use std::collections::HashMap;

use crate::reading::report::Report;
use crate::sections::forwarding::{Forwarding, Keys};
use crate::sections::node::Keys as Node;
use crate::sections::roles::Roles;
use crate::service::keys::Keys as Service;

/// Reports everything in the section that does not fit the nodes and services, and returns the section if it could be
/// read. The outer `None` means that it could not be read or is missing, the inner `None` that none is needed.
pub(crate) fn check(
    report: &mut Report<'_>,
    keys: Option<Keys>,
    nodes: &[Node],
    services: &[Service],
) -> Option<Option<Forwarding>> {
    let of_role = |role| {
        nodes
            .iter()
            .filter(move |node| node.has(role) == Some(true))
    };
    let mut io = of_role(Roles::is_io);
    let first = io.next();
    for node in io {
        let line = first.map_or(0, |first| report.line(&first.at));
        let what = format!("there is an I/O server already, on line {line}");
        let remedy =
            "give this node another role: only one has the cluster addresses and their TCP";
        report.error(node.roles.span(), what, remedy);
    }
    let first_app = of_role(Roles::is_app).next();
    let Some(keys) = keys else {
        let Some(member) = first.or(first_app) else {
            return Some(None);
        };
        let what = "the cluster has no [forwarding] section";
        let remedy =
            "add it, with addresses = [\"192.0.2.100\"]: what clients know the I/O server by";
        report.error(member.roles.span(), what, remedy);
        return None;
    };
    // A node whose roles could not be read may be the I/O server or an application node.
    let is_known = nodes.iter().all(|node| !node.roles.is_wrong());
    if first.is_none() && is_known {
        let what = "no node is an I/O server: nobody has the addresses of [forwarding]";
        let remedy = "give the role \"io\" to a [[node]], or remove the section";
        report.error(keys.at.clone(), what, remedy);
    }
    if first_app.is_none() && is_known {
        let what = "no node is an application node: nothing runs behind the I/O server";
        report.warning(keys.at.clone(), what, "give the role \"app\" to a [[node]]");
    }
    addresses(report, &keys, nodes, services);
    keys.finish().map(Some)
}

/// Reports an address of the I/O server that a node or a service has too, or that is listed twice.
fn addresses(report: &mut Report<'_>, keys: &Keys, nodes: &[Node], services: &[Service]) {
    let of_nodes = nodes.iter().filter_map(|node| node.address.given());
    let of_nodes = of_nodes.map(|one| (one.get_ref().ip(), (one.span(), "a node's own address")));
    let of_services = services
        .iter()
        .filter_map(|service| service.address.given());
    let of_services =
        of_services.map(|one| (one.get_ref().ip(), (one.span(), "a service's address")));
    let mut taken: HashMap<_, _> = of_nodes.chain(of_services).collect();
    for address in keys.addresses.items() {
        let ip = address.get_ref().ip();
        if let Some((span, what)) = taken.get(&ip) {
            let what = format!("{ip} is {what} already, on line {}", report.line(span));
            let remedy = "choose an address that only the I/O server has";
            report.error(address.span(), what, remedy);
        }
        taken.insert(ip, (address.span(), "an address of the I/O server"));
    }
}
