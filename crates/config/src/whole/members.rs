//! Which nodes serve a service.

use toml::Spanned;

use crate::document::suggestion;
use crate::field::Parsed;
use crate::name::NodeName;
use crate::node;
use crate::problem::Problem;
use crate::report::Report;
use crate::service;

/// The data servers of a service, or `None` after reporting why there are none.
pub(super) fn members(
    report: &mut Report<'_>,
    service: &service::Draft,
    nodes: &[node::Draft],
) -> Option<Vec<NodeName>> {
    let none = |report: &mut Report<'_>, at, remedy: &str| {
        report.error(
            Some(at),
            Problem::new("this service has no data server", remedy),
        );
        None
    };
    let listed = match &service.nodes {
        Parsed::Wrong => return None,
        Parsed::Absent => {
            let all = nodes.iter().filter(|node| serves(node));
            let all: Vec<_> = all.filter_map(|node| node.name.clone()).collect();
            if all.is_empty() {
                // As above: do not blame the service for a node that could not be read.
                let unread = nodes
                    .iter()
                    .any(|node| node.roles.is_none() || serves(node));
                if unread {
                    return None;
                }
                let remedy = "add \"ds\" to the roles of a [[node]]";
                return none(report, service.header.clone(), remedy);
            }
            return Some(all.into_iter().map(Spanned::into_inner).collect());
        }
        Parsed::Right(listed) => listed,
    };
    if listed.get_ref().is_empty() {
        let remedy = "name at least one, or remove the key to use all data servers";
        return none(report, listed.span(), remedy);
    }
    let mut members = Vec::new();
    for name in listed.get_ref() {
        let wrong = match find(nodes, name.get_ref()) {
            None => Some(unknown_node(name.get_ref(), nodes)),
            Some(node)
                if node
                    .roles
                    .as_ref()
                    .is_some_and(|roles| !roles.get_ref().is_ds()) =>
            {
                Some(Problem::new(
                    format!("the node \"{name}\" is not a data server"),
                    "add \"ds\" to its roles, or remove it from this service",
                ))
            }
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
    (members.len() == listed.get_ref().len()).then_some(members)
}

/// For a name that no node has.
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
    node.roles
        .as_ref()
        .is_some_and(|roles| roles.get_ref().is_ds())
}
