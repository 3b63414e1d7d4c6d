//! The choices of pools, for tasks of the daemon that choose data servers in user space.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use baton_core::policy::{self, Policy};
use baton_wire::Address;

use crate::locked::locked;

/// The choices of all pools, by the pools' indices. A clone sees the same choices.
#[derive(Clone, Debug, Default)]
pub struct Choices(Arc<Mutex<HashMap<u16, policy::Choices<u16>>>>);

/// Which data server is to answer a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The one that asks is a member of the pool.
    Own,
    /// The one in this slot.
    Other(u16),
    /// Nobody answers for the pool.
    Nobody,
}

impl Choices {
    /// Sets the choices of a pool: the slots of data servers.
    pub fn set(&self, pool: u16, policy: Policy, slots: &[u16]) {
        let mut pools = locked(&self.0);
        pools.entry(pool).or_default().set(policy.number(), slots);
    }

    /// Chooses for a request with this path, from this client, at the data server in slot `own`.
    pub fn choose(&self, pool: u16, own: u16, client: Address, path: &[u8]) -> Choice {
        match locked(&self.0).get_mut(&pool) {
            None => Choice::Nobody,
            Some(pool) if pool.contains(&own) => Choice::Own,
            Some(pool) => pool
                .pick(client, path)
                .map_or(Choice::Nobody, Choice::Other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_keeps_its_requests_and_others_take_turns() {
        let client = Address::from(std::net::Ipv4Addr::LOCALHOST);
        let choices = Choices::default();
        let choose = |own| choices.choose(3, own, client, b"/a");
        assert_eq!(choose(1), Choice::Nobody);
        choices.set(3, Policy::RoundRobin, &[1, 2]);
        assert_eq!(choose(1), Choice::Own);
        let mut others = [choose(7), choose(7)];
        others.sort_by_key(|one| *one == Choice::Other(2));
        assert_eq!(others, [Choice::Other(1), Choice::Other(2)]);
        choices.set(3, Policy::Path, &[1, 2]);
        assert_eq!(choose(7), choose(7));
        choices.set(3, Policy::RoundRobin, &[]);
        assert_eq!(choose(1), Choice::Nobody);
    }
}
