//! The servers that a redirector sends clients to. A [policy](baton_core::policy) chooses among those that are not
//! known to be down. Clients find out whether one is down: a client that goes back says from which server.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU8;
use std::time::Duration;

use baton_abi::POLICY_PATH;

use baton_core::Moment;
use baton_core::policy::{Chooser, Policy, Rotation, Server};
use baton_core::slots::Slot;

/// How long a server that did not answer is not chosen.
pub const DOWN: Duration = Duration::from_secs(5);

/// The most servers that can be chosen from: a server's index is a byte.
pub const MOST: usize = 256;

/// A server and its share of the clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The server's address and port.
    pub address: SocketAddr,
    /// The server's share of the clients.
    pub weight: NonZeroU8,
}

/// The servers that a policy chooses from.
#[derive(Debug)]
pub struct Targets {
    all: Vec<(String, Target)>,
    down: HashMap<SocketAddr, Moment>,
    chooser: Chooser,
    rotation: Rotation,
}

impl Targets {
    /// Makes a set of targets. If there are more than [`MOST`], only the first ones are used.
    pub fn new(policy: Policy, targets: Vec<Target>) -> Self {
        let named = |target: Target| (target.address.to_string(), target);
        Self {
            all: targets.into_iter().take(MOST).map(named).collect(),
            down: HashMap::new(),
            chooser: Chooser::new(policy),
            rotation: Rotation::default(),
        }
    }

    /// Whether the choice needs a request's path.
    pub fn by_path(&self) -> bool {
        self.chooser.policy().number() == POLICY_PATH
    }

    /// Notes that a server did not answer.
    pub fn handle_down(&mut self, now: Moment, server: SocketAddr) {
        if self.all.iter().any(|(_, one)| one.address == server) {
            self.down.insert(server, now + DOWN);
        }
    }

    /// Chooses a server for this client, but none of `without`. A server that is down is chosen only if all others are
    /// down, too. Returns `None` if there is no other server.
    pub fn choose(
        &mut self,
        now: Moment,
        client: IpAddr,
        path: &[u8],
        without: &[SocketAddr],
    ) -> Option<SocketAddr> {
        self.down.retain(|_, until| *until > now);
        // Servers that must not be chosen for this client alone stay in the table, which serves other clients as well.
        let here = |address: SocketAddr| !without.contains(&address);
        let up: Vec<usize> = (0..self.all.len())
            .filter(|&index| !self.down.contains_key(&self.all[index].1.address))
            .collect();
        // A choice by hash is the same each time, so the number of attempts has a limit.
        for _ in 0..=up.len() {
            let chosen = self.choose_of(now, &up, client, path);
            if chosen.is_some_and(here) {
                return chosen;
            }
        }
        let other = |indices: &[usize]| {
            let mut addresses = indices.iter().map(|&index| self.all[index].1.address);
            addresses.find(|&address| here(address))
        };
        let all: Vec<usize> = (0..self.all.len()).collect();
        other(&up).or_else(|| other(&all))
    }

    fn choose_of(
        &mut self,
        now: Moment,
        indices: &[usize],
        client: IpAddr,
        path: &[u8],
    ) -> Option<SocketAddr> {
        let servers: Vec<Server<'_>> = indices
            .iter()
            .map(|&index| Server {
                // `index` is below MOST.
                slot: Slot::from(index as u8),
                name: &self.all[index].0,
                weight: self.all[index].1.weight,
                load: None,
            })
            .collect();
        let policy = self.chooser.policy().number();
        let choices = self.chooser.choices(now, &servers);
        let slot = (self.rotation).pick(policy, choices, client.into(), path)?;
        Some(self.all.get(usize::from(slot))?.1.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(last: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, last], 80))
    }

    fn targets(policy: Policy) -> Targets {
        let target = |last| Target {
            address: at(last),
            weight: NonZeroU8::MIN,
        };
        Targets::new(policy, (1..=3).map(target).collect())
    }

    const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    #[test]
    fn each_in_turn_but_who_is_down() {
        let mut targets = targets(Policy::RoundRobin);
        let mut now = Moment::default();
        let four = |now, targets: &mut Targets| -> Vec<_> {
            let one = |_| targets.choose(now, CLIENT, b"", &[]).unwrap();
            let mut four: Vec<_> = (0..6).map(one).collect();
            four.sort();
            four
        };
        let all = [at(1), at(1), at(2), at(2), at(3), at(3)];
        assert_eq!(four(now, &mut targets), all);
        targets.handle_down(now, at(2));
        let rest = [at(1), at(1), at(1), at(3), at(3), at(3)];
        assert_eq!(four(now, &mut targets), rest);
        now = now + DOWN;
        assert_eq!(four(now, &mut targets), all);
    }

    #[test]
    fn a_path_has_its_place_and_a_client_another_one_if_nobody_is_there() {
        let mut targets = targets(Policy::Path);
        let now = Moment::default();
        let mut choose = |path: &[u8], without: &[_]| targets.choose(now, CLIENT, path, without);
        let places: Vec<_> = (0..50u8)
            .map(|path| choose(&[path], &[]).unwrap())
            .collect();
        assert!((1..=3).all(|last| places.contains(&at(last))));
        for (path, &place) in (0..50u8).zip(&places) {
            assert_eq!(choose(&[path], &[]), Some(place));
            let other = choose(&[path], &[place]).unwrap();
            assert_ne!(other, place);
        }
        assert_eq!(choose(b"/", &[at(1), at(2), at(3)]), None);
    }

    #[test]
    fn if_all_are_down_one_is_tried() {
        let mut targets = targets(Policy::Client);
        for last in 1..=3 {
            targets.handle_down(Moment::default(), at(last));
        }
        let chosen = targets.choose(Moment::default(), CLIENT, b"", &[at(1)]);
        assert_eq!(chosen, Some(at(2)));
    }
}
