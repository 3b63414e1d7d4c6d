//! Pools of the configuration, and their policies, translated to those of `baton_core`.

use std::{
    net::SocketAddrV4,
    num::{NonZeroU8, NonZeroU32},
};

use baton_config::{NodeName, Overflow, Policy, Weights};
use baton_core::{membership::UsableServer, policy, slots::Slot};
use baton_wire::Permille;

use super::pools::PoolId;

/// A pool: some data servers of a service, and how one of them is chosen.
pub struct PoolOf<'a> {
    pub id: PoolId,
    pub nodes: &'a [NodeName],
    pub weights: &'a Weights,
    pub policy: Policy,
    pub overflow: Option<&'a Overflow>,
}

impl PoolOf<'_> {
    /// Whether this server is in the pool and its weight is not 0.
    pub fn has(&self, server: &UsableServer) -> bool {
        let is_named = |node: &NodeName| node.as_str() == server.name;
        self.nodes.iter().any(is_named) && self.weight(&server.name, server.weight).is_some()
    }

    /// A server's weight in this pool: `own` if the pool gives it no other. `None` means 0: it takes no requests.
    pub fn weight(&self, server: &str, own: NonZeroU8) -> Option<NonZeroU8> {
        match self.weights.of(server) {
            Some(weight) => NonZeroU8::new(weight),
            None => Some(own),
        }
    }
}

/// The service's own pool, then its named pools in the order of the file.
pub fn pools<'a>(
    at: SocketAddrV4,
    service: &'a baton_config::Service,
) -> impl Iterator<Item = PoolOf<'a>> {
    let own = PoolOf {
        id: PoolId::new(at, None),
        nodes: &service.nodes,
        weights: &service.weights,
        policy: service.policy,
        overflow: service.overflow.as_ref(),
    };
    let named = service.pools.iter().map(move |pool| PoolOf {
        id: PoolId::new(at, Some(pool.name.as_str())),
        nodes: &pool.nodes,
        weights: &pool.weights,
        policy: pool.policy,
        overflow: pool.overflow.as_ref(),
    });
    std::iter::once(own).chain(named)
}

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
