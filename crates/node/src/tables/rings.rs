//! Rings: which data server is asked next where a connection is (CLAIM).

use std::{net::Ipv4Addr, time::Duration};

use anyhow::Result;
use baton_abi::{Ring, short_address};
use baton_core::{Moment, membership::Membership};
use baton_dataplane::DataServer;
use baton_wire::Address;

use super::Tables;
use crate::places::{Placed, endpoint};

impl Tables {
    /// Writes the rings of these services, which this data server serves. Data servers that are not heard are left
    /// out, because a CLAIM would end at them. If no other data server is heard, all are in the ring.
    pub fn write_rings(
        &mut self,
        server: &DataServer,
        now: Moment,
        own: Ipv4Addr,
        services: &[Placed<'_>],
        membership: &Membership,
    ) -> Result<()> {
        for node in membership.cluster().nodes() {
            if heard(membership, node.address) {
                self.silent_since.remove(&node.address);
            } else {
                self.silent_since.entry(node.address).or_insert(now);
            }
        }
        for (at, _) in services {
            let Some(id) = self.ids.get(at) else {
                continue;
            };
            let nodes = membership.cluster().members(endpoint(*at));
            let mut members: Vec<_> = nodes
                .filter_map(|node| Some((node.address.ipv4()?, self.presence(now, node.address))))
                .collect();
            members.sort_unstable_by_key(|(address, _)| *address);
            server.set_ring(*id, &ring(&members, own))?;
        }
        Ok(())
    }

    fn presence(&self, now: Moment, address: Address) -> Presence {
        match self.silent_since.get(&address) {
            None => Presence::Heard,
            Some(since) if now.since(*since) < LONG => Presence::Silent,
            Some(_) => Presence::Gone,
        }
    }
}

/// After this much silence, a data server is taken to have no connections anymore for which anybody would wait.
const LONG: Duration = Duration::from_secs(60);

/// Whether a data server is heard here, and if not, whether its silence is longer than [`LONG`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Heard,
    Silent,
    Gone,
}

fn heard(membership: &Membership, address: Address) -> bool {
    let presence = membership.presence(address);
    presence.is_some_and(|presence| presence.is_present())
}

/// The ring entry of `own` for a service with these data servers, which are sorted by address: the order must be the
/// same on every node.
fn ring(members: &[(Ipv4Addr, Presence)], own: Ipv4Addr) -> Ring {
    let is_heard = |member: &(Ipv4Addr, Presence)| member.1 == Presence::Heard;
    let alone = !members.iter().any(|it| is_heard(it) && it.0 != own);
    let asked: Vec<Ipv4Addr> = members
        .iter()
        .filter(|member| is_heard(member) || alone || member.0 == own)
        .map(|(address, _)| *address)
        .collect();
    let missing = members
        .iter()
        .filter(|(address, presence)| *presence == Presence::Silent && !asked.contains(address));
    let next = asked.iter().find(|address| **address > own);
    let next = next.or(asked.first()).copied().unwrap_or(own);
    // There are at most 256 data servers, so nothing is truncated.
    Ring {
        next: short_address(next),
        length: asked.len() as u16,
        missing: missing.count() as u16,
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Presence::{Gone, Heard, Silent},
        *,
    };

    fn at(last: u8) -> Ipv4Addr {
        Ipv4Addr::new(192, 0, 2, last)
    }

    /// Which data server is next, how many are asked, and how many are missing.
    fn ring_of(own: u8, members: &[(u8, Presence)]) -> (Ipv4Addr, u16, u16) {
        let members: Vec<_> = members.iter().map(|(last, is)| (at(*last), *is)).collect();
        let ring = ring(&members, at(own));
        let next = Ipv4Addr::from(ring.next.to_ne_bytes());
        (next, ring.length, ring.missing)
    }

    #[test]
    fn everybody_is_asked_once() {
        let all = [(1, Heard), (2, Heard), (3, Heard)];
        assert_eq!(ring_of(1, &all), (at(2), 3, 0));
        assert_eq!(ring_of(2, &all), (at(3), 3, 0));
        assert_eq!(ring_of(3, &all), (at(1), 3, 0));
    }

    /// A silent data server counts as missing until it is gone for good: nobody can say which connections it has.
    #[test]
    fn the_dead_are_not_asked() {
        let some = [(1, Heard), (2, Silent), (3, Heard)];
        assert_eq!(ring_of(1, &some), (at(3), 2, 1));
        assert_eq!(ring_of(3, &some), (at(1), 2, 1));
        // A node that has just started may not have heard its own HELLO, and is in its ring nevertheless.
        assert_eq!(ring_of(2, &some), (at(3), 3, 0));
        let gone = [(1, Heard), (2, Gone), (3, Heard)];
        assert_eq!(ring_of(1, &gone), (at(3), 2, 0));
    }

    /// A data server that hears nobody cannot conclude that nobody is there.
    #[test]
    fn if_nobody_is_heard_all_are_asked() {
        let none = [(1, Heard), (2, Silent), (3, Gone)];
        assert_eq!(ring_of(1, &none), (at(2), 3, 0));
        assert_eq!(ring_of(1, &[(1, Heard)]), (at(1), 1, 0));
    }
}
