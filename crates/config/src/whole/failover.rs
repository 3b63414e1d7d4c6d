//! Checks `[failover]` against the nodes and services.

use super::members::{List, listed};
use crate::reading::parsed::Parsed;
use crate::reading::report::Report;
use crate::sections::failover::{Failover, Keys};
use crate::sections::node::Keys as Node;
use crate::sections::roles::Roles;
use crate::service::keys::Keys as Service;
use crate::values::name::NodeName;

const CANDIDATES: List = List {
    role: Roles::is_cs,
    called: ("a connection server", "cs"),
    whose: "candidates",
    nobody: "nobody is a candidate for the cluster addresses",
    default: ": then every connection server is one",
    once: "list it once, where it is preferred to those that follow",
};

/// The section, if it fits the nodes and services; everything that does not fit is reported. The outer
/// `None` means that something does not fit, the inner `None` that there is no section.
pub(crate) fn check(
    report: &mut Report<'_>,
    keys: Option<Keys>,
    nodes: &[Node],
    services: &[Service],
) -> Option<Option<Failover>> {
    let Some(keys) = keys else {
        return Some(None);
    };
    alone(report, &keys, nodes, services);
    let candidates: Vec<NodeName> = match &keys.candidates {
        Parsed::Given(names) => listed(report, names, nodes, &CANDIDATES)?.to_vec(),
        Parsed::Wrong => return None,
        _ => nodes
            .iter()
            .filter(|node| node.has(Roles::is_cs) == Some(true))
            .filter_map(|node| node.name.get().cloned())
            .collect(),
    };
    if let [only] = &candidates[..] {
        report.warning(
            keys.at.clone(),
            format!("\"{only}\" is the only candidate: nobody takes over from it"),
            "add \"cs\" to the roles of another node, and name it among candidates if there is a list",
        );
    }
    keys.finish(candidates).map(Some)
}

/// Reports a switch or a service's `connection_servers` beside `[failover]`: each of them decides too
/// which nodes have the cluster addresses.
fn alone(report: &mut Report<'_>, keys: &Keys, nodes: &[Node], services: &[Service]) {
    let is_switch = |node: &&Node| node.has(Roles::is_switch) == Some(true);
    if let Some(switch) = nodes.iter().find(is_switch) {
        let line = report.line(&switch.at);
        report.error(
            keys.at.clone(),
            format!("the switch on line {line} has the cluster addresses, so no connection server takes them over"),
            "remove [failover]: the switch leaves out a connection server that fails; or remove the switch",
        );
    }
    let line = report.line(&keys.at);
    for names in services
        .iter()
        .filter_map(|service| service.connection_servers.given())
    {
        report.error(
            names.span(),
            format!("with [failover], on line {line}, the one in front has all cluster addresses"),
            "remove connection_servers, or [failover]",
        );
    }
}
