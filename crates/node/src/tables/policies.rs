//! Policies of the configuration, translated to those of `baton_core`.

use std::num::NonZeroU32;

use baton_config::{NodeName, Policy};
use baton_core::{policy, slots::Slot};
use baton_wire::Permille;

use super::services::PoolOf;

/// The policy by which this node, `me`, chooses among the data servers of a pool.
pub fn policy(
    pool: &PoolOf<'_>,
    me: &NodeName,
    slot: impl Fn(&NodeName) -> Option<Slot>,
) -> policy::Policy {
    match pool.policy {
        Policy::RoundRobin => policy::Policy::RoundRobin,
        Policy::Weighted => policy::Policy::Weighted,
        Policy::Client => policy::Policy::Client,
        Policy::Path => policy::Policy::Path,
        Policy::LeastLoaded => policy::Policy::LeastLoaded,
        Policy::Lard => policy::Policy::Lard,
        Policy::Overflow => overflow(pool, me, slot).unwrap_or(policy::Policy::Weighted),
    }
}

/// The overflow policy of a pool. `None` if it has no limits, or while its home has no slot and so takes no requests.
fn overflow(
    pool: &PoolOf<'_>,
    me: &NodeName,
    slot: impl Fn(&NodeName) -> Option<Slot>,
) -> Option<policy::Policy> {
    let limits = pool.overflow?;
    let here = pool.nodes.iter().find(|node| *node == me);
    // The limits may be the service's, so the home that they name need not be in this pool.
    let named = (limits.home.as_ref()).filter(|home| pool.nodes.contains(home));
    let home = named.or(here).or(pool.nodes.first())?;
    Some(policy::Policy::Overflow(policy::Limits {
        home: slot(home)?,
        cpu: limits.cpu.map(Permille::saturating),
        connections: limits.connections.map(NonZeroU32::get),
    }))
}
