//! Checks that `weights` names only data servers of its service or pool, and that not all data servers of a service or
//! pool have weight 0.

use std::iter;

use super::members::find;
use crate::reading::report::Report;
use crate::sections::node::Keys as Node;
use crate::service::keys::{Keys as Service, Nodes};
use crate::service::policy::Policy;
use crate::service::weights::Weights;
use crate::values::members::Members;
use crate::values::name::NodeName;

/// Reports names in `weights` that are not data servers of the service or pool.
pub(super) fn check(report: &mut Report<'_>, service: &Service, nodes: &Nodes) {
    let pools = service.pool.iter().zip(&nodes.pools);
    let pools = pools.map(|(pool, members)| (&pool.weights, members, "pool"));
    let own = iter::once((&service.weights, &nodes.own, "service"));
    for (weights, members, whose) in own.chain(pools) {
        let (Some(weights), Some(members)) = (weights.given(), members) else {
            continue;
        };
        for name in weights
            .get_ref()
            .nodes()
            .filter(|name| !members.contains(name))
        {
            let what =
                format!("weights names \"{name}\", which is not among the nodes of this {whose}");
            report.error(weights.span(), what, "add it to nodes, or remove it here");
        }
    }
}

/// Warns of services and pools under the policy "weighted" whose data servers all have weight 0.
pub(super) fn warn_all_zero(
    report: &mut Report<'_>,
    nodes: &[Node],
    services: &[Service],
    members: &[Nodes],
) {
    let is_weightless = |name: &NodeName, weights: Option<&Weights>| {
        let own = || find(nodes, name)?.weight.get().copied();
        let weight = weights.and_then(|weights| weights.of(name.as_str()));
        weight.or_else(own) == Some(0)
    };
    let is_idle = |policy, members: &Option<Members>, weights| {
        let all_zero = |members: &Members| members.iter().all(|name| is_weightless(name, weights));
        policy == Some(Policy::Weighted) && members.as_ref().is_some_and(all_zero)
    };
    for (service, members) in services.iter().zip(members) {
        let of_service = service.policy.get().copied();
        let weights = service.weights.get();
        let mut idle = Vec::new();
        if is_idle(of_service, &members.own, weights) {
            idle.push(("service", &service.at));
        }
        for (pool, members) in service.pool.iter().zip(&members.pools) {
            // A pool that has all of this from its service has been reported with the service.
            let inherits =
                pool.nodes.is_absent() && pool.policy.is_absent() && pool.weights.is_absent();
            let weights = pool.weights.get().or(weights);
            if is_idle(pool.policy(of_service), members, weights) && !inherits {
                idle.push(("pool", &pool.at));
            }
        }
        for (whose, at) in idle {
            let what = format!(
                "every data server of this {whose} has weight 0: it takes no new connections"
            );
            report.warning(at.clone(), what, "raise the weight of one");
        }
    }
}
