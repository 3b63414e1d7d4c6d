//! Finds the nodes that serve a service and its pools.

use toml::Spanned;

use crate::reading::document::suggestion;
use crate::reading::parsed::Parsed;
use crate::reading::problem::Problem;
use crate::reading::report::Report;
use crate::sections::node::Keys as Node;
use crate::sections::roles::Roles;
use crate::service::keys::{Keys as Service, Nodes};
use crate::values::members::Members;
use crate::values::name::NodeName;

/// The nodes of a service: these connection servers, and the data servers of the service and its pools. Names that are
/// not those of data servers are reported.
pub(super) fn members(
    report: &mut Report<'_>,
    service: &Service,
    nodes: &[Node],
    connection_servers: Option<Option<Members>>,
) -> Nodes {
    let own = match &service.nodes {
        Parsed::Given(names) => listed(report, names, nodes, &OF_SERVICE),
        Parsed::Wrong => None,
        _ => all(report, service, nodes),
    };
    let pools = service.pool.iter().map(|pool| match &pool.nodes {
        Parsed::Given(names) => listed(report, names, nodes, &OF_POOL),
        Parsed::Wrong => None,
        _ => own.clone(),
    });
    let pools = pools.collect();
    Nodes {
        connection_servers,
        pools,
        own,
    }
}

/// Every data server.
fn all(report: &mut Report<'_>, service: &Service, nodes: &[Node]) -> Option<Members> {
    let all = nodes.iter().filter(|node| serves(node));
    let all: Vec<_> = all.filter_map(|node| node.name.get().cloned()).collect();
    // Do not blame the service for a node that could not be read.
    if nodes
        .iter()
        .all(|node| node.has(Roles::is_ds) == Some(false))
    {
        let remedy = "add \"ds\" to the roles of a [[node]]";
        report.error(service.at.clone(), OF_SERVICE.nobody, remedy);
    }
    Members::new(all)
}

/// What must hold for a list of nodes, and the words for errors in it.
pub(super) struct List {
    /// The role that every node of the list must have.
    pub(super) role: fn(Roles) -> bool,
    /// What a node with the role is, and the role in the file.
    pub(super) called: (&'static str, &'static str),
    /// What the list belongs to.
    pub(super) whose: &'static str,
    /// What is wrong with an empty list.
    pub(super) nobody: &'static str,
    /// What an absent list means, as the end of a remedy.
    pub(super) default: &'static str,
    /// The remedy for a node that is listed twice.
    pub(super) once: &'static str,
}

const OF_SERVICE: List = List {
    role: Roles::is_ds,
    called: ("a data server", "ds"),
    whose: "this service",
    nobody: "this service has no data server",
    default: " to use all data servers",
    once: "list it once; for a larger share use policy \"weighted\" and its weight",
};

const OF_POOL: List = List {
    whose: "this pool",
    nobody: "this pool has no data server",
    default: " to use those of the service",
    ..OF_SERVICE
};

/// The nodes of these names, if each of them exists, has the role and is listed once.
pub(super) fn listed(
    report: &mut Report<'_>,
    names: &Spanned<Vec<Spanned<NodeName>>>,
    nodes: &[Node],
    list: &List,
) -> Option<Members> {
    if names.get_ref().is_empty() {
        let remedy = format!("name at least one, or remove the key{}", list.default);
        report.error(names.span(), list.nobody, remedy);
    }
    let mut members = Vec::new();
    for name in names.get_ref() {
        let problem = match find(nodes, name.get_ref()) {
            None => unknown_node(name.get_ref(), nodes),
            Some(node) if node.has(list.role) == Some(false) => {
                let ((kind, role), whose) = (list.called, list.whose);
                Problem::new(
                    format!("the node \"{name}\" is not {kind}"),
                    format!("add \"{role}\" to its roles, or remove it from {whose}"),
                )
            }
            Some(_) if members.contains(name.get_ref()) => {
                Problem::new(format!("the node \"{name}\" is listed twice"), list.once)
            }
            Some(_) => {
                members.push(name.get_ref().clone());
                continue;
            }
        };
        report.problem(name.span(), problem);
    }
    let complete = members.len() == names.get_ref().len();
    Members::new(members).filter(|_| complete)
}

/// The problem of a name that no node has.
pub(super) fn unknown_node(name: &NodeName, nodes: &[Node]) -> Problem {
    let names = nodes.iter().filter_map(|node| node.name.get());
    let known: Vec<&str> = names.map(NodeName::as_str).collect();
    let remedy = match known.is_empty() {
        true => "add a [[node]] with this name".to_owned(),
        false => suggestion(name.as_str(), &known),
    };
    Problem::new(format!("there is no node \"{name}\""), remedy)
}

/// The node with this name.
pub(super) fn find<'a>(nodes: &'a [Node], name: &NodeName) -> Option<&'a Node> {
    nodes.iter().find(|node| node.name.get() == Some(name))
}

/// Whether the node is known to be a data server.
pub(super) fn serves(node: &Node) -> bool {
    node.has(Roles::is_ds) == Some(true)
}
