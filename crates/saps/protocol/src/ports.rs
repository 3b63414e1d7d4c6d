//! The listeners of each port. Several nodes may listen on one port and get its connections as the policy says (in
//! turn, in the paper).

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::wire::Families;

use super::PortPolicy;
use super::choice::{Candidate, Candidates};

/// The listeners of all ports. An `L` identifies one listener.
#[derive(Clone, Debug)]
pub struct Ports<L> {
    policy: PortPolicy,
    /// The listeners of each port and IP version (`true` is IPv6).
    listeners: BTreeMap<(u16, bool), Candidates<L>>,
}

impl<L: Copy + Eq> Ports<L> {
    /// Makes a set without listeners; `policy` chooses among several.
    pub fn new(policy: PortPolicy) -> Self {
        let listeners = BTreeMap::new();
        Self { policy, listeners }
    }

    /// Adds a listener of a node that has this name and weight. Its turn comes last.
    pub fn add(&mut self, port: u16, families: Families, listener: L, node: &str, weight: u8) {
        for is_ipv6 in each(families) {
            let of_port = self.listeners.entry((port, is_ipv6)).or_default();
            let candidate = Candidate::new(listener, node, weight);
            of_port.change().push(candidate);
        }
    }

    /// Sets another policy, and other weights by the nodes' names, from the next connection on.
    pub fn set_policy(&mut self, policy: PortPolicy, weight: impl Fn(&str) -> u8) {
        self.policy = policy;
        for of_port in self.listeners.values_mut() {
            for one in of_port.change() {
                one.weight = weight(&one.name);
            }
        }
    }

    /// Removes the listeners for whom `is_gone` holds.
    pub fn remove(&mut self, is_gone: impl Fn(&L) -> bool) {
        self.listeners.retain(|_, of_port| {
            of_port.change().retain(|one| !is_gone(&one.who));
            !of_port.all.is_empty()
        });
    }

    /// Chooses the listener that gets a client's connection, leaving out those for whom `tried` holds. The connection
    /// counts as open until [`Ports::ended`].
    pub fn next(
        &mut self,
        port: u16,
        is_ipv6: bool,
        client: IpAddr,
        tried: impl Fn(&L) -> bool,
    ) -> Option<L> {
        let of_port = self.listeners.get_mut(&(port, is_ipv6))?;
        of_port.next(self.policy, client, tried)
    }

    /// Reports that a connection for which `listener` was chosen has ended or was not taken.
    pub fn ended(&mut self, port: u16, is_ipv6: bool, listener: L) {
        let of_port = self.listeners.get_mut(&(port, is_ipv6));
        let all = of_port.into_iter().flat_map(|of_port| &mut of_port.all);
        // A listener that was removed is not found here.
        for one in all.filter(|one| one.who == listener) {
            one.open = one.open.saturating_sub(1);
        }
    }

    /// The listeners on this port for any of these IP versions. One that listens for both comes twice.
    pub fn on(&self, port: u16, families: Families) -> impl Iterator<Item = L> {
        (each(families)).flat_map(move |is_ipv6| {
            let of_port = self.listeners.get(&(port, is_ipv6));
            let all = of_port.into_iter().flat_map(|of_port| &of_port.all);
            all.map(|one| one.who)
        })
    }

    /// Every port and IP version (`true` is IPv6) that has a listener.
    pub fn ports(&self) -> impl Iterator<Item = (u16, bool)> {
        self.listeners.keys().copied()
    }

    /// How many listeners this port and IP version have.
    pub fn count(&self, port: u16, is_ipv6: bool) -> usize {
        let of_port = self.listeners.get(&(port, is_ipv6));
        of_port.map_or(0, |of_port| of_port.all.len())
    }
}

fn each(families: Families) -> impl Iterator<Item = bool> {
    let (v4, v6) = match families {
        Families::V4 => (true, false),
        Families::V6 => (false, true),
        Families::Both => (true, true),
    };
    [(v4, false), (v6, true)]
        .into_iter()
        .filter_map(|(is, family)| is.then_some(family))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const ANY: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

    fn ports(policy: PortPolicy, nodes: &[(char, u8)]) -> Ports<char> {
        let mut ports = Ports::new(policy);
        for (node, weight) in nodes {
            ports.add(80, Families::Both, *node, &node.to_string(), *weight);
        }
        ports
    }

    fn chosen(ports: &mut Ports<char>, count: usize) -> String {
        (0..count)
            .map(|_| ports.next(80, false, ANY, |_| false).unwrap())
            .collect()
    }

    #[test]
    fn nodes_take_turns_and_who_was_tried_is_left_out() {
        let mut ports = ports(PortPolicy::RoundRobin, &[('a', 1), ('b', 9), ('c', 1)]);
        assert_eq!(chosen(&mut ports, 4), "abca");
        let mut next = |tried: &[char]| ports.next(80, false, ANY, |node| tried.contains(node));
        assert_eq!(next(&['b']), Some('c'));
        assert_eq!(next(&[]), Some('b'));
        assert_eq!(next(&['a', 'b', 'c']), None);
        // The other IP version has a turn of its own.
        assert_eq!(ports.next(80, true, ANY, |_| false), Some('a'));
    }

    #[test]
    fn a_port_ends_with_its_last_listener() {
        let mut ports = Ports::new(PortPolicy::RoundRobin);
        ports.add(80, Families::V4, 'a', "a", 1);
        ports.add(80, Families::Both, 'b', "b", 1);
        assert_eq!(ports.count(80, false), 2);
        ports.remove(|node| *node == 'b');
        assert_eq!(ports.ports().collect::<Vec<_>>(), [(80, false)]);
        ports.remove(|node| *node == 'a');
        assert_eq!(ports.next(80, false, ANY, |_| false), None);
        assert_eq!(ports.ports().count(), 0);
    }

    #[test]
    fn turns_are_by_weight_and_spread() {
        let mut ports = ports(PortPolicy::Weighted, &[('a', 3), ('b', 1), ('c', 0)]);
        let turns = chosen(&mut ports, 400);
        assert_eq!(turns.matches('a').count(), 300);
        assert_eq!(turns.matches('b').count(), 100);
        assert!(!turns.contains("bb") && !turns.contains("aaaa"), "{turns}");
        assert_eq!(ports.next(80, false, ANY, |node| *node == 'a'), Some('b'));
    }

    #[test]
    fn the_fewest_open_connections_for_the_weight_are_least() {
        let mut ports = ports(PortPolicy::LeastLoaded, &[('a', 1), ('b', 2), ('c', 0)]);
        let first = chosen(&mut ports, 30);
        assert_eq!(first.matches('b').count(), 20, "{first}");
        // All connections of 'a' end, and it gets new ones until it has as many again.
        (0..10).for_each(|_| ports.ended(80, false, 'a'));
        assert_eq!(chosen(&mut ports, 10), "a".repeat(10));
        // Connections over IPv6 are counted apart, and a listener that was never chosen has none to end.
        (0..10).for_each(|_| ports.ended(80, true, 'b'));
        assert_eq!(ports.next(80, false, ANY, |node| *node == 'a'), Some('b'));
    }

    #[test]
    fn a_client_stays_with_its_node_and_few_move_when_one_leaves() {
        let clients = || (0..1000u32).map(|n| IpAddr::from(Ipv4Addr::from(0x0a00_0000 + n)));
        let choose = |ports: &mut Ports<char>| -> Vec<char> {
            clients()
                .map(|client| ports.next(80, false, client, |_| false).unwrap())
                .collect()
        };
        let mut ports = ports(
            PortPolicy::Client,
            &[('a', 1), ('b', 1), ('c', 1), ('d', 0)],
        );
        let before = choose(&mut ports);
        assert_eq!(before, choose(&mut ports));
        for node in ['a', 'b', 'c'] {
            let share = before.iter().filter(|one| **one == node).count();
            assert!((250..420).contains(&share), "{node}: {share}");
        }
        // A client that its node does not take gets another node, and the same one each time.
        let tried = |ports: &mut Ports<char>| ports.next(80, false, ANY, |node| *node == 'a');
        assert!(tried(&mut ports).is_some_and(|node| node != 'a'));
        assert_eq!(tried(&mut ports), tried(&mut ports));
        ports.remove(|node| *node == 'b');
        let after = choose(&mut ports);
        let moved = (before.iter().zip(&after)).filter(|(old, new)| **old != 'b' && old != new);
        assert!(moved.count() < 50);
    }

    #[test]
    fn weights_and_policy_can_change() {
        let mut ports = ports(PortPolicy::RoundRobin, &[('a', 1), ('b', 1)]);
        assert_eq!(chosen(&mut ports, 2), "ab");
        ports.set_policy(PortPolicy::Weighted, |name| u8::from(name == "b"));
        assert_eq!(chosen(&mut ports, 3), "bbb");
        ports.set_policy(PortPolicy::Client, |_| 0);
        assert_eq!(ports.next(80, false, ANY, |_| false), None);
    }
}
