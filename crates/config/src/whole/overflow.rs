//! Checks that `overflow` and the policy of that name stand together, and that the home is among the data servers.

use std::ops::Range;

use crate::reading::parsed::Parsed;
use crate::reading::report::Report;
use crate::service::keys::{Keys, Nodes};
use crate::service::overflow;
use crate::service::policy::Policy;
use crate::values::members::Members;

/// Reports where `overflow` and the policy do not fit together, in a service and its pools.
pub(super) fn check(report: &mut Report<'_>, service: &Keys, nodes: &Nodes) {
    let of_service = service.policy.get().copied();
    let overflow = &service.overflow;
    one(
        report,
        &service.at,
        of_service,
        overflow,
        nodes.own.as_ref(),
        "service",
    );
    for (pool, members) in service.pool.iter().zip(&nodes.pools) {
        let policy = pool.policy(of_service);
        // Without `overflow` the pool has the service's, whose home need not be in the pool. If the service has none,
        // that has been reported already, unless the pool has a policy of its own.
        if !pool.overflow.is_absent() {
            one(
                report,
                &pool.at,
                policy,
                &pool.overflow,
                members.as_ref(),
                "pool",
            );
        } else if overflow.is_absent() && !pool.policy.is_absent() {
            one(report, &pool.at, policy, overflow, None, "pool");
        }
    }
}

fn one(
    report: &mut Report<'_>,
    at: &Range<usize>,
    policy: Option<Policy>,
    overflow: &Parsed<overflow::Keys>,
    members: Option<&Members>,
    whose: &str,
) {
    let Some(policy) = policy else { return };
    match (policy, overflow) {
        (Policy::Overflow, Parsed::Given(given)) => {
            let home = given.get_ref().home.given();
            if let (Some(home), Some(members)) = (home, members)
                && !members.contains(home.get_ref())
            {
                let what = format!("the home \"{home}\" is not among the nodes of this {whose}");
                report.error(home.span(), what, "add it to `nodes`, or name another");
            }
        }
        (Policy::Overflow, Parsed::Absent) => report.error(
            at.clone(),
            format!("this {whose} has the policy \"overflow\", but no limits"),
            "add overflow = { connections = 1000 }, or cpu = 0.8, or both",
        ),
        (_, Parsed::Given(given)) => report.warning(
            given.span(),
            "overflow has no effect under another policy",
            "remove it, or set policy = \"overflow\"",
        ),
        _ => {}
    }
}
