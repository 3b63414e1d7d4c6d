//! Checks that `weights` names only data servers of its service or pool.

use toml::Spanned;

use crate::reading::field::Parsed;
use crate::reading::problem::Problem;
use crate::reading::report::Report;
use crate::service::{self, Nodes};
use crate::values::members::Members;

/// Reports names in `weights` that are not data servers of the service or pool.
pub(super) fn check(report: &mut Report<'_>, service: &service::Draft, nodes: &Nodes) {
    let pools = service.pools.iter().zip(&nodes.pools);
    let pools = pools.map(|(pool, members)| (&pool.weights, members, "pool"));
    for (weights, members, whose) in
        std::iter::once((&service.weights, &nodes.own, "service")).chain(pools)
    {
        let (Parsed::Right(weights), Some(members)) = (weights, members) else {
            continue;
        };
        unlisted(report, weights, members, whose);
    }
}

fn unlisted(
    report: &mut Report<'_>,
    weights: &Spanned<crate::Weights>,
    members: &Members,
    whose: &str,
) {
    for name in weights.get_ref().nodes() {
        if !members.contains(name) {
            report.error(
                weights.span(),
                Problem::new(
                    format!(
                        "weights names \"{name}\", which is not among the nodes of this {whose}"
                    ),
                    "add it to nodes, or remove it here",
                ),
            );
        }
    }
}
