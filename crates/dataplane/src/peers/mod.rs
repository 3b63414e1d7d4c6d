//! What the programs know of other nodes: keys, numbered messages, and what they refused.

pub mod channels;
pub mod peer_keys;
pub mod refused;
pub mod stale;
