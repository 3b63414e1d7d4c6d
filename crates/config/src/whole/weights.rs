//! Checks that `weights` names only data servers of its service or pool, and that not all data servers of a service or
//! pool have weight 0.

use toml::Spanned;

use super::members::find;
use crate::reading::field::Parsed;
use crate::reading::problem::Problem;
use crate::reading::report::Report;
use crate::sections::node;
use crate::service::policy::Policy;
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

/// Warns of services and pools under the policy "weighted" whose data servers all have weight 0.
pub(super) fn warn_all_zero(
    report: &mut Report<'_>,
    nodes: &[node::Draft],
    services: &[service::Draft],
    members: &[Nodes],
) {
    let idle = |members: &Option<Members>| {
        let weightless = |name| find(nodes, name).is_some_and(|node| node.weight == Some(0));
        members
            .as_ref()
            .is_some_and(|members| members.iter().all(weightless))
    };
    for (service, members) in services.iter().zip(members) {
        let weighted = |policy| policy == Some(Policy::Weighted);
        if weighted(service.policy()) && idle(&members.own) {
            report.warning(service.header.clone(), weightless("service"));
        }
        for (pool, members) in service.pools.iter().zip(&members.pools) {
            let policy = (service.policy()).and_then(|of_service| pool.policy.clone_or(of_service));
            // A pool that has nodes and policy from its service has been reported with the service.
            let inherits = matches!(
                (&pool.nodes, &pool.policy),
                (Parsed::Absent, Parsed::Absent)
            );
            if weighted(policy) && idle(members) && !inherits {
                report.warning(pool.header.clone(), weightless("pool"));
            }
        }
    }
}

fn weightless(whose: &str) -> Problem {
    Problem::new(
        format!("every data server of this {whose} has weight 0: it takes no new connections"),
        "raise the weight of one",
    )
}
