//! What a node knows of the others: whether they live, how far their clocks are off, which version of LCCP they speak,
//! and which keys it shares with them.

pub mod clocks;
pub mod heartbeat;
pub mod keys;
pub mod liveness;
pub mod retransmission;
pub mod versions;
