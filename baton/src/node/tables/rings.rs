//! Rings: whom a data server asks next who has a connection (CLAIM).

use std::net::Ipv4Addr;

use anyhow::Result;
use baton_abi::{Ring, short_address};
use baton_core::membership::Membership;
use baton_dataplane::Dataplane;
use baton_wire::Address;

use super::{
    Tables,
    services::{Placed, endpoint},
};

impl Tables {
    /// Writes the rings of these services, which this data server serves. Those that are not heard are
    /// left out, or a question would end with them; unless nobody else is heard.
    pub fn write_rings(
        &self,
        dataplane: &Dataplane,
        own: Ipv4Addr,
        services: &[Placed<'_>],
        membership: &Membership,
    ) -> Result<()> {
        for (at, _) in services {
            let Some(id) = self.ids.get(at) else {
                continue;
            };
            let mut members: Vec<(Ipv4Addr, bool)> = membership
                .cluster()
                .members(endpoint(*at))
                .filter_map(|node| {
                    let heard = membership.presence(node.address);
                    Some((ipv4(node.address)?, heard.is_some_and(|it| it.is_present())))
                })
                .collect();
            members.sort_unstable();
            dataplane.set_ring(*id, &ring(&members, own))?;
        }
        Ok(())
    }
}

/// Of all data servers of a service, in an order that is the same on every node, and whether they are heard.
fn ring(members: &[(Ipv4Addr, bool)], own: Ipv4Addr) -> Ring {
    let alone = !members
        .iter()
        .any(|(address, heard)| *heard && *address != own);
    let asked: Vec<Ipv4Addr> = members
        .iter()
        .filter(|(address, heard)| *heard || alone || *address == own)
        .map(|(address, _)| *address)
        .collect();
    let next = asked.iter().find(|address| **address > own);
    let next = next.or(asked.first()).copied().unwrap_or(own);
    Ring {
        next: short_address(next),
        length: asked.len() as u32, // of 256 data servers at most
    }
}

fn ipv4(address: Address) -> Option<Ipv4Addr> {
    match address.ip() {
        std::net::IpAddr::V4(address) => Some(address),
        std::net::IpAddr::V6(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(last: u8) -> Ipv4Addr {
        Ipv4Addr::new(192, 0, 2, last)
    }

    fn ring_of(own: u8, members: &[(u8, bool)]) -> (u32, u32) {
        let members: Vec<_> = members.iter().map(|(last, up)| (at(*last), *up)).collect();
        let ring = ring(&members, at(own));
        (ring.next, ring.length)
    }

    #[test]
    fn everybody_is_asked_once() {
        let all = [(1, true), (2, true), (3, true)];
        assert_eq!(ring_of(1, &all), (short_address(at(2)), 3));
        assert_eq!(ring_of(2, &all), (short_address(at(3)), 3));
        assert_eq!(ring_of(3, &all), (short_address(at(1)), 3));
    }

    #[test]
    fn the_dead_are_not_asked() {
        let some = [(1, true), (2, false), (3, true)];
        assert_eq!(ring_of(1, &some), (short_address(at(3)), 2));
        assert_eq!(ring_of(3, &some), (short_address(at(1)), 2));
        // A node that has just started has not even heard itself.
        assert_eq!(ring_of(2, &some), (short_address(at(3)), 3));
    }

    /// Who hears nobody does not know that there is nobody.
    #[test]
    fn if_nobody_is_heard_all_are_asked() {
        let none = [(1, true), (2, false), (3, false)];
        assert_eq!(ring_of(1, &none), (short_address(at(2)), 3));
        assert_eq!(ring_of(1, &[(1, true)]), (short_address(at(1)), 1));
    }
}
