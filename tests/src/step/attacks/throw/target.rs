//! The target of hand-made frames.

use std::net::Ipv4Addr;

use baton_wire::LccpKey;

use crate::frames::Way;

/// The addresses and the key of the frames.
pub(super) struct Target {
    pub way: Way,
    pub client: Ipv4Addr,
    /// The sender of messages between nodes.
    pub sender: Ipv4Addr,
    pub node: Ipv4Addr,
    /// The key of messages from the sender to the node, or a wrong one in its place if the step's `stolen` says so.
    pub key: LccpKey,
    pub is_cs: bool,
}
