//! Checks that the keys of one node belong to a node of the cluster and are complete.

use std::ops::Range;

use crate::reading::report::Report;
use crate::sections::cluster::Draft;
use crate::sections::key::Key;
use crate::sections::node::Node;
use crate::sections::node_keys::NodeKeys;

/// Reports what is wrong with the keys of one node. The secret fits every node.
pub(crate) fn check(report: &mut Report<'_>, draft: &Draft, nodes: &[Node]) {
    let cluster = &draft.cluster;
    if let Key::Node(keys) = &cluster.key
        && let Some(node) = owner(report, &draft.key_at, keys, nodes)
    {
        complete(report, &draft.key_at, keys, node, nodes);
    }
    if let (Some(Key::Node(keys)), Some(at)) = (&cluster.previous_key, &draft.previous_key_at) {
        owner(report, at, keys, nodes);
        if let Key::Node(current) = &cluster.key
            && current.node != keys.node
        {
            let (previous, current) = (keys.node, current.node);
            report.error(
                at.clone(),
                format!(
                    "the previous keys are those of the node at {previous}, the current ones of the node at {current}"
                ),
                "give this node's own: baton key NODE",
            );
        }
    }
}

/// The node whose keys these are. Reports if there is no such node, or if it has not `own_keys = true`.
fn owner<'a>(
    report: &mut Report<'_>,
    at: &Range<usize>,
    keys: &NodeKeys,
    nodes: &'a [Node],
) -> Option<&'a Node> {
    let address = keys.node;
    let mut found = nodes
        .iter()
        .filter(|node| node.address.ipv4() == Some(address));
    let Some(node) = found.next() else {
        let what =
            format!("the keys are those of a node at {address}, and no [[node]] has that address");
        let remedy = "make them anew where the secret is: baton key NODE";
        report.error(at.clone(), what, remedy);
        return None;
    };
    if !node.own_keys {
        let what = format!(
            "{} is given only its own keys, and its [[node]] does not say so",
            node.name
        );
        let remedy =
            "write own_keys = true there, in the file of every node, or give it the secret";
        report.error(at.clone(), what, remedy);
        return None;
    }
    Some(node)
}

fn complete(
    report: &mut Report<'_>,
    at: &Range<usize>,
    keys: &NodeKeys,
    own: &Node,
    nodes: &[Node],
) {
    let lacks =
        |node: &&Node| (node.address.ipv4()).is_some_and(|other| keys.with(other).is_none());
    let missing = nodes.iter().filter(lacks);
    let missing: Vec<_> = missing
        .map(|node| format!("{} ({})", node.name, node.address))
        .collect();
    if !missing.is_empty() {
        let what = format!("{} has no key for {}", own.name, missing.join(", "));
        let remedy = format!(
            "make its keys anew where the secret is: baton key {}",
            own.name
        );
        report.error(at.clone(), what, remedy);
    }
}
