//! How a pool's data server is chosen: each policy has a file, and this one lists them all.
//!
//! A policy is plain code that makes *choices*: a table of servers, which the CS program walks in
//! turn or indexes by a hash. A new policy needs a file beside this one with a [`Rule`], a line in each `match`
//! of [`Policy`], and its word in the configuration.
//!
//! ```text
//!  usable servers, their loads --> Chooser --names in order--> Rule --indices--> choices: slots
//! ```

mod client;
mod lard;
mod least_loaded;
mod overflow;
mod path;
mod pick;
mod round_robin;
mod rule;
mod server;
mod weighted;

use std::num::NonZeroU8;

use baton_abi::{POLICY_CLIENT, POLICY_PATH, POLICY_TURN};

pub use overflow::Limits;
pub use pick::{Choices, Rotation};
pub use server::{Load, Server};

use crate::Moment;
use crate::slots::Slot;
use rule::Rule;

/// How a data server is chosen for a new connection, or for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// The servers take turns.
    RoundRobin,
    /// The servers take turns, each as often as its weight says.
    Weighted,
    /// The server is chosen by the client's address: few clients move when a server leaves. Shares are by
    /// weight.
    Client,
    /// The server is chosen by the request's path: what a server has read once stays in its memory. Shares are
    /// by weight.
    Path,
    /// The servers take turns, each the more often the less it has to do for its weight.
    LeastLoaded,
    /// The server is chosen by the request's path, as long as no server has too much to do while another has too
    /// little.
    Lard,
    /// One server, the home, serves until it has too much to do, and the others serve what is beyond that.
    Overflow(Limits),
}

impl Policy {
    /// How the program reads the choices (`enum policy`): walks them, or indexes them by a hash.
    pub const fn number(self) -> u32 {
        match self {
            Self::RoundRobin | Self::Weighted | Self::LeastLoaded | Self::Overflow(_) => {
                POLICY_TURN
            }
            Self::Client => POLICY_CLIENT,
            Self::Path | Self::Lard => POLICY_PATH,
        }
    }

    fn rule(self) -> Box<dyn Rule> {
        match self {
            Self::RoundRobin => Box::new(round_robin::RoundRobin),
            Self::Weighted => Box::new(weighted::Weighted),
            Self::Client => Box::new(client::Client),
            Self::Path => Box::new(path::Path),
            Self::LeastLoaded => Box::<least_loaded::LeastLoaded>::default(),
            Self::Lard => Box::<lard::Lard>::default(),
            Self::Overflow(limits) => Box::new(overflow::Overflow::new(limits)),
        }
    }
}

/// The choices of one pool, over time.
#[derive(Debug)]
pub struct Chooser {
    policy: Policy,
    rule: Box<dyn Rule>,
    members: Vec<Member>,
    choices: Vec<u16>,
}

type Member = (String, Slot, NonZeroU8);

impl Chooser {
    /// Makes the chooser of a pool without servers.
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            rule: policy.rule(),
            members: Vec::new(),
            choices: Vec::new(),
        }
    }

    /// The policy by which it chooses.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// The choices now: slots of `servers`, at most `CHOICES_PER_POOL`; none if there are no servers. The order
    /// of the input does not matter. The choices change only if servers, slots or weights do, or at
    /// [`Chooser::next_timeout`]; between these times the call costs next to nothing.
    pub fn choices(&mut self, now: Moment, servers: &[Server<'_>]) -> &[u16] {
        let mut servers = servers.to_vec();
        servers.sort_by_key(|server| (server.name, server.slot));
        let members: Vec<Member> = servers
            .iter()
            .map(|server| (server.name.to_owned(), server.slot, server.weight))
            .collect();
        let is_due = self.next_timeout().is_some_and(|timeout| timeout <= now);
        if members.is_empty() {
            *self = Self::new(self.policy);
        } else if is_due || members != self.members {
            self.choices = self
                .rule
                .choices(now, &servers)
                .into_iter()
                .map(|index| servers[index].slot.into())
                .collect();
            self.members = members;
        }
        &self.choices
    }

    /// When to ask for the choices again though the servers stay the same, because their loads count.
    pub fn next_timeout(&self) -> Option<Moment> {
        self.rule.next_timeout()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maglev;

    const ALL: &[Policy] = &[
        Policy::RoundRobin,
        Policy::Weighted,
        Policy::Client,
        Policy::Path,
        Policy::LeastLoaded,
        Policy::Lard,
    ];

    fn servers() -> Vec<Server<'static>> {
        let server = |slot, name, weight| Server {
            slot: Slot::from(slot),
            name,
            weight: NonZeroU8::new(weight).unwrap(),
            load: None,
        };
        vec![
            server(7, "ds1", 1),
            server(0, "ds2", 2),
            server(255, "ds3", 1),
        ]
    }

    fn choices(policy: Policy, servers: &[Server<'_>]) -> Vec<u16> {
        Chooser::new(policy)
            .choices(Moment::default(), servers)
            .to_vec()
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
    fn client_and_path_fill_the_table_with_slots() {
        for policy in [Policy::Client, Policy::Path] {
            let choices = choices(policy, &servers());
            assert_eq!(choices.len(), maglev::SIZE);
            assert!(choices.iter().all(|slot| [7, 0, 255].contains(slot)));
        }
    }

    /// Several CSs that start at different times must begin alike.
    #[test]
    fn without_a_word_of_loads_they_are_as_the_weights_say() {
        assert_eq!(
            choices(Policy::Lard, &servers()),
            choices(Policy::Path, &servers())
        );
        let turns = choices(Policy::LeastLoaded, &servers());
        let share =
            |slot| turns.iter().filter(|&&turn| turn == slot).count() as f64 / turns.len() as f64;
        assert!((share(0) - 0.5).abs() < 0.01, "{}", share(0));
        assert!((share(7) - 0.25).abs() < 0.01, "{}", share(7));
    }

    #[test]
    fn no_servers_leave_no_choice_and_order_leaves_no_trace() {
        for &policy in ALL {
            assert!(choices(policy, &[]).is_empty());
            let mut reversed = servers();
            reversed.reverse();
            assert_eq!(choices(policy, &servers()), choices(policy, &reversed));
        }
    }

    #[test]
    fn who_changes_is_seen_at_once_and_loads_in_their_time() {
        for &policy in ALL {
            let mut chooser = Chooser::new(policy);
            let now = Moment::default();
            let all = chooser.choices(now, &servers()).to_vec();
            let fewer = chooser.choices(now, &servers()[..2]).to_vec();
            assert!(all.contains(&255) && !fewer.contains(&255), "{policy:?}");
            let by_load = matches!(policy, Policy::LeastLoaded | Policy::Lard);
            assert_eq!(chooser.next_timeout().is_some(), by_load, "{policy:?}");
            assert!(chooser.choices(now, &[]).is_empty());
            assert_eq!(chooser.next_timeout(), None, "{policy:?}");
        }
    }
}
