//! Finds the nodes that serve a service and its pools.

use toml::Spanned;

use crate::reading::document::suggestion;
use crate::reading::field::Parsed;
use crate::reading::problem::Problem;
use crate::reading::report::Report;
use crate::sections::node::{self, Roles};
use crate::service::{self, Nodes};
use crate::values::members::Members;
use crate::values::name::NodeName;

/// The nodes of a service: these connection servers, and the data servers of the service and its pools. Names that are
/// not those of data servers are reported.
pub(super) fn members(
    report: &mut Report<'_>,
    service: &service::Draft,
    nodes: &[node::Draft],
    connection_servers: Option<Option<Members>>,
) -> Nodes {
    let own = match &service.nodes {
        Parsed::Wrong => None,
        Parsed::Absent => all(report, service, nodes),
        Parsed::Right(names) => listed(report, "service", names, nodes),
    };
    let pools = service.pools.iter().map(|pool| match &pool.nodes {
        Parsed::Wrong => None,
        Parsed::Absent => own.clone(),
        Parsed::Right(names) => listed(report, "pool", names, nodes),
    });
    let pools = pools.collect();
    Nodes {
        connection_servers,
        pools,
        own,
    }
}

/// Every data server.
fn all(
    report: &mut Report<'_>,
    service: &service::Draft,
    nodes: &[node::Draft],
) -> Option<Members> {
    let all = nodes.iter().filter(|node| serves(node));
    let all: Vec<_> = all.filter_map(|node| node.name.clone()).collect();
    // Do not blame the service for a node that could not be read.
    let unread = nodes
        .iter()
        .any(|node| node.roles.is_none() || serves(node));
    if all.is_empty() && !unread {
        let remedy = "add \"ds\" to the roles of a [[node]]";
        report.error(service.header.clone(), nobody("service", remedy));
    }
    Members::new(all.into_iter().map(Spanned::into_inner).collect())
}

/// The nodes of these names, if each of them exists, is a data server and is listed once.
fn listed(
    report: &mut Report<'_>,
    whose: &str,
    names: &Spanned<Vec<Spanned<NodeName>>>,
    nodes: &[node::Draft],
) -> Option<Members> {
    if names.get_ref().is_empty() {
        let default = match whose {
            "service" => "all data servers",
            _ => "those of the service",
        };
        let remedy = format!("name at least one, or remove the key to use {default}");
        report.error(names.span(), nobody(whose, remedy));
        return None;
    }
    let mut members = Vec::new();
    for name in names.get_ref() {
        let wrong = match find(nodes, name.get_ref()) {
            None => Some(unknown_node(name.get_ref(), nodes)),
            Some(node) if node.has(Roles::is_ds) == Some(false) => Some(Problem::new(
                format!("the node \"{name}\" is not a data server"),
                format!("add \"ds\" to its roles, or remove it from this {whose}"),
            )),
            Some(_) if members.contains(name.get_ref()) => Some(Problem::new(
                format!("the node \"{name}\" is listed twice"),
                "list it once; for a larger share use policy \"weighted\" and its weight",
            )),
            Some(_) => None,
        };
        match wrong {
            Some(problem) => report.error(name.span(), problem),
            None => members.push(name.get_ref().clone()),
        }
    }
    (members.len() == names.get_ref().len())
        .then(|| Members::new(members))
        .flatten()
}

fn nobody(whose: &str, remedy: impl Into<String>) -> Problem {
    Problem::new(format!("this {whose} has no data server"), remedy)
}

/// The problem of a name that no node has.
pub(super) fn unknown_node(name: &NodeName, nodes: &[node::Draft]) -> Problem {
    let known: Vec<&str> = nodes
        .iter()
        .filter_map(|node| Some(node.name.as_ref()?.get_ref().as_str()))
        .collect();
    let remedy = match known.is_empty() {
        true => "add a [[node]] with this name".to_owned(),
        false => suggestion(name.as_str(), &known),
    };
    Problem::new(format!("there is no node \"{name}\""), remedy)
}

/// The node with this name.
pub(super) fn find<'a>(nodes: &'a [node::Draft], name: &NodeName) -> Option<&'a node::Draft> {
    nodes
        .iter()
        .find(|node| node.name.as_ref().is_some_and(|n| n.get_ref() == name))
}

/// Whether the node is known to be a data server.
pub(super) fn serves(node: &node::Draft) -> bool {
    node.has(Roles::is_ds) == Some(true)
}
