//! The switch's XDP program. Its next hops have the addresses of [`crate::cluster::ds`], but are
//! connection servers.

mod icmp;
mod places;
mod untouched;

use baton_abi::ETHER_SWITCHED;

use crate::prelude::*;

/// Checks that the switch sends the frame inside another one, and returns the connection server that it goes to.
#[track_caller]
fn goes_to(node: &Node, frame: &[u8], counted: Counted<'_>) -> u16 {
    let seen = node.run(frame).expect(Tx, counted);
    let (outer, inner) = seen.frame.split_at(14);
    assert_eq!(inner, frame, "{seen:?}");
    assert_eq!(outer[6..12], CS_MAC, "it is the sender's own");
    assert_eq!(outer[12..], (ETHER_SWITCHED as u16).to_be_bytes());
    let to = (0..3).find(|server| outer[..6] == ds_mac(*server));
    to.unwrap_or_else(|| panic!("to nobody: {seen:?}"))
}
