//! Checks that `overflow` and the policy of that name stand together, and that the home is among the data servers.

use crate::reading::field::Parsed;
use crate::reading::problem::Problem;
use crate::reading::report::{Report, Span};
use crate::service::overflow;
use crate::service::policy::Policy;
use crate::service::{self, Nodes};
use crate::values::members::Members;

/// Reports where `overflow` and the policy do not fit together, in a service and its pools.
pub(super) fn check(report: &mut Report<'_>, service: &service::Draft, nodes: &Nodes) {
    let of_service = service.policy();
    let at = Some(service.header.clone());
    one(
        report,
        at,
        of_service,
        &service.overflow,
        &nodes.own,
        "service",
    );
    for (pool, members) in service.pools.iter().zip(&nodes.pools) {
        let policy = of_service.and_then(|policy| pool.policy.clone_or(policy));
        let at = Some(pool.header.clone());
        match &pool.overflow {
            // The pool has the service's `overflow`, whose home need not be in the pool. If the service has
            // none, that has been reported already, unless the pool has a policy of its own.
            Parsed::Absent => {
                let of_service = &service.overflow;
                let is_missing = matches!(of_service, Parsed::Absent);
                if is_missing && !matches!(pool.policy, Parsed::Absent) {
                    one(report, at, policy, of_service, &None, "pool");
                }
            }
            own => one(report, at, policy, own, members, "pool"),
        }
    }
}

fn one(
    report: &mut Report<'_>,
    at: Span,
    policy: Option<Policy>,
    overflow: &Parsed<overflow::Draft>,
    members: &Option<Members>,
    whose: &str,
) {
    let Some(policy) = policy else { return };
    let given = match overflow {
        Parsed::Wrong => return,
        Parsed::Absent => None,
        Parsed::Right(given) => Some(given),
    };
    match (policy, given) {
        (Policy::Overflow, None) => report.error(
            at,
            Problem::new(
                format!("this {whose} has the policy \"overflow\", but no limits"),
                "add overflow = { connections = 1000 }, or cpu = 0.8, or both",
            ),
        ),
        (Policy::Overflow, Some(given)) => {
            let home = given.get_ref().home.as_ref();
            let stranger = home.zip(members.as_ref());
            if let Some((home, _)) = stranger.filter(|(home, all)| !all.contains(home.get_ref())) {
                report.error(
                    home.span(),
                    Problem::new(
                        format!(
                            "the home \"{}\" is not among the nodes of this {whose}",
                            home.get_ref()
                        ),
                        "add it to `nodes`, or name another",
                    ),
                );
            }
        }
        (_, Some(given)) => report.warning(
            given.span(),
            Problem::new(
                "overflow has no effect under another policy",
                "remove it, or set policy = \"overflow\"",
            ),
        ),
        (_, None) => {}
    }
}
