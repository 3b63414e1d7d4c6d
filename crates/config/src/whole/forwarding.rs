//! Checks `[forwarding]` against the nodes and services.

use std::collections::HashMap;

use crate::reading::problem::Problem;
use crate::reading::report::Report;
use crate::sections::forwarding::{Draft, Forwarding};
use crate::sections::node::{self, Roles};
use crate::service;

/// Reports everything in the section that does not fit the nodes and services, and returns the section if it could be
/// read. The outer `None` means that it could not be read or is missing, the inner `None` that none is needed.
pub(crate) fn check(
    report: &mut Report<'_>,
    draft: Option<Draft>,
    nodes: &[node::Draft],
    services: &[service::Draft],
) -> Option<Option<Forwarding>> {
    let mut io = nodes
        .iter()
        .filter(|node| node.has(Roles::is_io) == Some(true));
    let first = io.next();
    for node in io {
        if let (Some(first), Some(roles)) = (first, &node.roles) {
            let line = report.line(&first.header);
            let what = format!("there is an I/O server already, on line {line}");
            let remedy =
                "give this node another role: only one has the cluster addresses and their TCP";
            report.error(roles.span(), Problem::new(what, remedy));
        }
    }
    let apps = nodes
        .iter()
        .filter(|node| node.has(Roles::is_app) == Some(true));
    let first_app = apps.clone().next();
    let member = first.or(first_app).and_then(|node| node.roles.as_ref());
    let Some(draft) = draft else {
        if let Some(roles) = member {
            let what = "the cluster has no [forwarding] section";
            let remedy =
                "add it, with addresses = [\"192.0.2.100\"]: what clients know the I/O server by";
            report.error(roles.span(), Problem::new(what, remedy));
            return None;
        }
        return Some(None);
    };
    // A node whose roles could not be read may be the I/O server or an application node.
    let is_unknown = |node: &node::Draft| node.roles.is_none();
    if first.is_none() && !nodes.iter().any(is_unknown) {
        let what = "no node is an I/O server: nobody has the addresses of [forwarding]";
        let remedy = "give the role \"io\" to a [[node]], or remove the section";
        report.error(draft.header.clone(), Problem::new(what, remedy));
    }
    if first_app.is_none() && !nodes.iter().any(is_unknown) {
        let what = "no node is an application node: nothing runs behind the I/O server";
        let remedy = "give the role \"app\" to a [[node]]";
        report.warning(draft.header.clone(), Problem::new(what, remedy));
    }
    addresses(report, &draft, nodes, services);
    draft.finish().map(Some)
}

/// Reports an address of the I/O server that a node or a service has too, or that is listed twice.
fn addresses(
    report: &mut Report<'_>,
    draft: &Draft,
    nodes: &[node::Draft],
    services: &[service::Draft],
) {
    let of_nodes = (nodes.iter()).filter_map(|node| {
        let address = node.address.as_ref()?;
        Some((
            address.get_ref().ip(),
            (address.span(), "a node's own address"),
        ))
    });
    let of_services = (services.iter()).filter_map(|service| {
        let address = service.address.as_ref()?;
        Some((
            address.get_ref().ip(),
            (address.span(), "a service's address"),
        ))
    });
    let mut taken: HashMap<_, _> = of_nodes.chain(of_services).collect();
    for address in draft.addresses.iter().flatten() {
        let ip = address.get_ref().ip();
        if let Some((span, what)) = taken.get(&ip) {
            let line = report.line(span);
            report.error(
                address.span(),
                Problem::new(
                    format!("{ip} is {what} already, on line {line}"),
                    "choose an address that only the I/O server has",
                ),
            );
        }
        taken.insert(ip, (address.span(), "an address of the I/O server"));
    }
}
