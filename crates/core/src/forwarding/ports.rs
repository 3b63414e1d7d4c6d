//! Which listeners a port has, and whose turn it is: several nodes may listen on one port, and get its
//! connections in turn (round robin, as in the paper).

use std::collections::BTreeMap;

use baton_wire::forwarding::Families;

/// The listeners of all ports; `L` names one.
#[derive(Clone, Debug)]
pub struct Ports<L> {
    /// For each port and family (true: IPv6) those who listen, the next one first.
    turns: BTreeMap<(u16, bool), Vec<L>>,
}

impl<L> Default for Ports<L> {
    fn default() -> Self {
        let turns = BTreeMap::new();
        Self { turns }
    }
}

impl<L: Copy + Eq> Ports<L> {
    /// A listener comes; last in turn.
    pub fn add(&mut self, port: u16, families: Families, listener: L) {
        for is_ipv6 in each(families) {
            self.turns
                .entry((port, is_ipv6))
                .or_default()
                .push(listener);
        }
    }

    /// Those for whom `is_gone` holds listen no longer.
    pub fn remove(&mut self, is_gone: impl Fn(&L) -> bool) {
        self.turns.retain(|_, listeners| {
            listeners.retain(|listener| !is_gone(listener));
            !listeners.is_empty()
        });
    }

    /// Whose turn it is, but for those for whom `tried` holds; the turn passes.
    pub fn next(&mut self, port: u16, is_ipv6: bool, tried: impl Fn(&L) -> bool) -> Option<L> {
        let listeners = self.turns.get_mut(&(port, is_ipv6))?;
        let at = listeners.iter().position(|listener| !tried(listener))?;
        let listener = listeners.remove(at);
        listeners.push(listener);
        Some(listener)
    }

    /// Who listens on any of these.
    pub fn on(&self, port: u16, families: Families) -> impl Iterator<Item = L> {
        (each(families)).flat_map(move |is_ipv6| {
            self.turns
                .get(&(port, is_ipv6))
                .into_iter()
                .flatten()
                .copied()
        })
    }

    /// Every port and family (true: IPv6) with a listener.
    pub fn ports(&self) -> impl Iterator<Item = (u16, bool)> {
        self.turns.keys().copied()
    }

    /// How many listen there.
    pub fn count(&self, port: u16, is_ipv6: bool) -> usize {
        self.turns.get(&(port, is_ipv6)).map_or(0, Vec::len)
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
    use super::*;

    #[test]
    fn nodes_take_turns_and_who_was_tried_is_left_out() {
        let mut ports = Ports::default();
        for node in ['a', 'b', 'c'] {
            ports.add(80, Families::Both, node);
        }
        let mut next = |tried: &[char]| ports.next(80, false, |node| tried.contains(node));
        assert_eq!(
            (0..4).map(|_| next(&[]).unwrap()).collect::<String>(),
            "abca"
        );
        assert_eq!(next(&['b']), Some('c'));
        assert_eq!(next(&[]), Some('b'));
        assert_eq!(next(&['a', 'b', 'c']), None);
        // The other family has a turn of its own.
        assert_eq!(ports.next(80, true, |_| false), Some('a'));
    }

    #[test]
    fn a_port_ends_with_its_last_listener() {
        let mut ports = Ports::default();
        ports.add(80, Families::V4, 'a');
        ports.add(80, Families::Both, 'b');
        assert_eq!(ports.count(80, false), 2);
        ports.remove(|node| *node == 'b');
        assert_eq!(ports.ports().collect::<Vec<_>>(), [(80, false)]);
        ports.remove(|node| *node == 'a');
        assert_eq!(ports.next(80, false, |_| false), None);
        assert_eq!(ports.ports().count(), 0);
    }
}
