//! A service's policy and its usable servers, put together: the choices that the CS program walks.

use std::num::NonZeroU8;

use baton_abi::{POLICY_CLIENT, POLICY_TURN};

use crate::slots::Slot;
use crate::{maglev, turn};

/// How a data server is chosen for a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Each in turn.
    RoundRobin,
    /// Each in turn, as often as its weight says.
    Weighted,
    /// By the client's address: few clients move when a server leaves. Shares are by weight.
    Client,
}

impl Policy {
    /// How the program reads the choices (`enum policy`): walks them, or indexes them by a hash.
    pub const fn number(self) -> u32 {
        match self {
            Self::RoundRobin | Self::Weighted => POLICY_TURN,
            Self::Client => POLICY_CLIENT,
        }
    }
}

/// A data server that takes new connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server<'a> {
    /// Its index in the programs' map of data servers.
    pub slot: Slot,
    /// Its node's name, by which every CS knows it alike.
    pub name: &'a str,
    /// Its share of the connections.
    pub weight: NonZeroU8,
}

/// The choices of a service: slots of `servers`, at most `CHOICES_PER_SERVICE`; none if there are
/// no servers. The order of the input does not matter.
pub fn choices(policy: Policy, servers: &[Server<'_>]) -> Vec<u16> {
    let mut servers = servers.to_vec();
    servers.sort_by_key(|server| (server.name, server.slot));
    let weights = || servers.iter().map(|server| server.weight);
    let turns = match policy {
        Policy::RoundRobin => turn::wheel(&vec![NonZeroU8::MIN; servers.len()]),
        Policy::Weighted => turn::wheel(&weights().collect::<Vec<_>>()),
        Policy::Client => {
            let named: Vec<_> = servers
                .iter()
                .map(|server| server.name)
                .zip(weights())
                .collect();
            maglev::table(&named).unwrap_or_default()
        }
    };
    turns
        .into_iter()
        .map(|index| servers[index].slot.into())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers() -> Vec<Server<'static>> {
        let server = |slot, name, weight| Server {
            slot: Slot::from(slot),
            name,
            weight: NonZeroU8::new(weight).unwrap(),
        };
        vec![
            server(7, "ds1", 1),
            server(0, "ds2", 2),
            server(255, "ds3", 1),
        ]
    }

    #[test]
    fn round_robin_is_each_once_whatever_the_weights() {
        assert_eq!(choices(Policy::RoundRobin, &servers()), [7, 0, 255]);
    }

    #[test]
    fn weighted_is_each_as_often_as_its_weight() {
        assert_eq!(choices(Policy::Weighted, &servers()), [0, 7, 0, 255]);
    }

    #[test]
    fn client_fills_the_table_with_slots() {
        let choices = choices(Policy::Client, &servers());
        assert_eq!(choices.len(), maglev::SIZE);
        assert!(choices.iter().all(|slot| [7, 0, 255].contains(slot)));
    }

    #[test]
    fn no_servers_leave_no_choice_and_order_leaves_no_trace() {
        for policy in [Policy::RoundRobin, Policy::Weighted, Policy::Client] {
            assert!(choices(policy, &[]).is_empty());
            let mut reversed = servers();
            reversed.reverse();
            assert_eq!(choices(policy, &servers()), choices(policy, &reversed));
        }
    }
}
