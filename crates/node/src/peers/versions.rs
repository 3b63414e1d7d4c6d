//! Which nodes speak another version of LCCP than this node.
//!
//! The version is the first byte of every message, in all versions. Where another version has its tag is not known
//! here, so anybody may have sent such a message. It is believed only of a node of which nothing was understood lately,
//! and used only to tell people.

use std::{collections::HashMap, net::Ipv4Addr, time::Duration};

use baton_core::Moment;

/// How long a message counts. An older one says nothing, because the node may have been upgraded since.
const FORGOTTEN: Duration = Duration::from_secs(10);

/// When a message of each node was understood last, and when one of another version came, by the node's address.
#[derive(Default)]
pub struct Versions {
    understood: HashMap<Ipv4Addr, Moment>,
    other: HashMap<Ipv4Addr, (u8, Moment)>,
}

impl Versions {
    /// Notes a message that was taken.
    pub fn note_understood(&mut self, now: Moment, from: Ipv4Addr) {
        self.understood.insert(from, now);
    }

    /// Notes a message of another version. Call this only for nodes of the configuration: anybody can forge an address.
    pub fn note_other(&mut self, now: Moment, from: Ipv4Addr, version: u8) {
        self.other.insert(from, (version, now));
    }

    /// The version that `node` speaks, if it is another than this node's.
    pub fn of(&self, now: Moment, node: Ipv4Addr) -> Option<u8> {
        let is_fresh = |at: Moment| now < at + FORGOTTEN;
        if (self.understood.get(&node)).is_some_and(|at| is_fresh(*at)) {
            return None;
        }
        let (version, at) = self.other.get(&node)?;
        is_fresh(*at).then_some(*version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

    fn at(seconds: u64) -> Moment {
        Moment::after_epoch(Duration::from_secs(seconds))
    }

    #[test]
    fn what_it_speaks_is_known_for_a_while() {
        let mut versions = Versions::default();
        assert_eq!(versions.of(at(0), NODE), None);
        versions.note_other(at(0), NODE, 2);
        assert_eq!(versions.of(at(9), NODE), Some(2));
        assert_eq!(versions.of(at(10), NODE), None);
    }

    #[test]
    fn who_is_understood_speaks_this_version_whatever_comes_in_its_name() {
        let mut versions = Versions::default();
        versions.note_understood(at(0), NODE);
        versions.note_other(at(1), NODE, 2);
        assert_eq!(versions.of(at(9), NODE), None);
        assert_eq!(versions.of(at(10), NODE), Some(2));
    }
}
