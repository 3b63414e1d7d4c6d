//! Checks `[failover]` against the nodes and services.

use super::members::{find, unknown_node};
use crate::reading::field::Parsed;
use crate::reading::problem::Problem;
use crate::reading::report::Report;
use crate::sections::failover::{Draft, Failover};
use crate::sections::node::{self, Roles};
use crate::service;
use crate::values::name::NodeName;

/// The section, if it fits the nodes and services; everything that does not fit is reported. The outer
/// `None` means that something does not fit, the inner `None` that there is no section.
pub(crate) fn check(
    report: &mut Report<'_>,
    draft: Option<Draft>,
    nodes: &[node::Draft],
    services: &[service::Draft],
) -> Option<Option<Failover>> {
    let Some(draft) = draft else {
        return Some(None);
    };
    alone(report, &draft, nodes, services);
    let candidates: Vec<NodeName> = match &draft.candidates {
        Parsed::Wrong => return None,
        Parsed::Absent => nodes
            .iter()
            .filter(|node| node.has(Roles::is_cs) == Some(true))
            .filter_map(|node| Some(node.name.as_ref()?.get_ref().clone()))
            .collect(),
        Parsed::Right(_) => listed(report, &draft, nodes)?,
    };
    if candidates.len() == 1 {
        report.warning(
            draft.header.clone(),
            Problem::new(
                format!("\"{}\" is the only candidate: nobody takes over from it", candidates[0]),
                "add \"cs\" to the roles of another node, and name it among candidates if there is a list",
            ),
        );
    }
    draft.finish(candidates).map(Some)
}

/// Reports a switch or a service's `connection_servers` beside `[failover]`: each of them decides too
/// which nodes have the cluster addresses.
fn alone(
    report: &mut Report<'_>,
    draft: &Draft,
    nodes: &[node::Draft],
    services: &[service::Draft],
) {
    let is_switch = |node: &&node::Draft| node.has(Roles::is_switch) == Some(true);
    if let Some(switch) = nodes.iter().find(is_switch) {
        let line = report.line(&switch.header);
        report.error(
            draft.header.clone(),
            Problem::new(
                format!("the switch on line {line} has the cluster addresses, so no connection server takes them over"),
                "remove [failover]: the switch leaves out a connection server that fails; or remove the switch",
            ),
        );
    }
    for service in services {
        if let Parsed::Right(names) = &service.connection_servers {
            let line = report.line(&draft.header);
            report.error(
                names.span(),
                Problem::new(
                    format!("with [failover], on line {line}, the one in front has all cluster addresses"),
                    "remove connection_servers, or [failover]",
                ),
            );
        }
    }
}

fn listed(report: &mut Report<'_>, draft: &Draft, nodes: &[node::Draft]) -> Option<Vec<NodeName>> {
    let Parsed::Right(names) = &draft.candidates else {
        return None;
    };
    let mut good: Vec<NodeName> = Vec::new();
    for name in names.get_ref() {
        let wrong = match find(nodes, name.get_ref()) {
            None => Some(unknown_node(name.get_ref(), nodes)),
            Some(node) if node.has(Roles::is_cs) == Some(false) => Some(Problem::new(
                format!("the node \"{name}\" is not a connection server"),
                "add \"cs\" to its roles, or remove it from candidates",
            )),
            Some(_) if good.contains(name.get_ref()) => Some(Problem::new(
                format!("the node \"{name}\" is listed twice"),
                "list it once, where it is preferred to those that follow",
            )),
            Some(_) => None,
        };
        match wrong {
            Some(problem) => report.error(name.span(), problem),
            None => good.push(name.get_ref().clone()),
        }
    }
    if names.get_ref().is_empty() {
        let what = "nobody is a candidate for the cluster addresses";
        let remedy = "name at least one, or remove the key: then every connection server is one";
        report.error(names.span(), Problem::new(what, remedy));
    }
    (!good.is_empty() && good.len() == names.get_ref().len()).then_some(good)
}
