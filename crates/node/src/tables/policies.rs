//! Policies of the configuration, as the core calls them.

use std::num::NonZeroU32;

use baton_config::{NodeName, Policy};
use baton_core::{policy, slots::Slot};
use baton_wire::Permille;

use super::services::PoolOf;

/// How a pool of this node chooses.
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

/// `None` while the home has no slot, and so takes nothing.
fn overflow(
    pool: &PoolOf<'_>,
    me: &NodeName,
    slot: impl Fn(&NodeName) -> Option<Slot>,
) -> Option<policy::Policy> {
    let limits = pool.overflow?;
    let here = pool.nodes.iter().find(|node| *node == me);
    // Limits may be the service's, and so not speak of this pool's nodes.
    let named = (limits.home.as_ref()).filter(|home| pool.nodes.contains(home));
    let home = named.or(here).or(pool.nodes.first())?;
    Some(policy::Policy::Overflow(policy::Limits {
        home: slot(home)?,
        cpu: limits.cpu.map(Permille::saturating),
        connections: limits.connections.map(NonZeroU32::get),
    }))
}
