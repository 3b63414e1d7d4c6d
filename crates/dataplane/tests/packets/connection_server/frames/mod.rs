//! What is around the packets: layers, cards, pieces, and what is broken there.

pub mod also_mac;
pub mod cards;
pub mod icmp;
pub mod jumbo;
pub mod malformed;
pub mod not_ours;
pub mod switched;
pub mod truncated;
