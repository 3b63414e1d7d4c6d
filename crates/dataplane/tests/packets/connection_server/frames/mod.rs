//! The frames around packets: layers, network cards, frames in several pieces, and broken frames.

pub mod also_mac;
pub mod cards;
pub mod icmp;
pub mod jumbo;
pub mod malformed;
pub mod not_ours;
pub mod switched;
pub mod truncated;
