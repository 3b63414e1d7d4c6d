//! Ports that cannot be listened on for a program, because another program of this host has them.
//!
//! A program's listen() does not wait for the I/O server, so the node must know in advance which ports would be
//! refused.

use std::net::{IpAddr, SocketAddr};

use baton_net::listeners::Listener;
use baton_saps_protocol::wire::{Families, MAX_TAKEN, TakenPort};

/// The ports of `addresses` that the `listeners` of this host have, without those for which `is_ours` holds, in
/// ascending order.
pub(super) fn taken(
    listeners: &[Listener],
    addresses: &[IpAddr],
    is_ours: impl Fn(SocketAddr) -> bool,
) -> Vec<TakenPort> {
    let mut ports: Vec<u16> = (listeners.iter())
        .map(|listener| listener.address.port())
        .collect();
    ports.sort_unstable();
    ports.dedup();
    let has = |port, is_ipv6| {
        let mut of_family = addresses
            .iter()
            .filter(|address| address.is_ipv6() == is_ipv6);
        of_family.any(|address| {
            let target = SocketAddr::new(*address, port);
            !is_ours(target) && listeners.iter().any(|listener| listener.takes(target))
        })
    };
    let found = ports.into_iter().filter_map(|port| {
        let families = match (has(port, false), has(port, true)) {
            (true, true) => Families::Both,
            (true, false) => Families::V4,
            (false, true) => Families::V6,
            (false, false) => return None,
        };
        Some(TakenPort { port, families })
    });
    found.take(MAX_TAKEN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_have_is_taken_and_nothing_else() {
        let listener = |address: &str, only_ipv6| Listener {
            address: address.parse().unwrap(),
            only_ipv6,
            mptcp: false,
            backlog: 0,
            inode: 0,
        };
        let listeners = [
            listener("[::]:22", false),
            listener("[::]:23", true),
            listener("0.0.0.0:25", false),
            listener("127.0.0.1:53", false),
            listener("192.0.2.100:80", false),
            listener("192.0.2.100:81", false),
            // This is on the other cluster address of the IP version.
            listener("192.0.2.101:82", false),
        ];
        let addresses = ["192.0.2.100", "192.0.2.101", "2001:db8::100"];
        let addresses = addresses.map(|address| address.parse().unwrap());
        let ours: SocketAddr = "192.0.2.100:80".parse().unwrap();
        let found = taken(&listeners, &addresses, |address| address == ours);
        let expected = [
            (22, Families::Both),
            (23, Families::V6),
            (25, Families::V4),
            (81, Families::V4),
            (82, Families::V4),
        ];
        let expected = expected.map(|(port, families)| TakenPort { port, families });
        assert_eq!(found, expected);
    }
}
