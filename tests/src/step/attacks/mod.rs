//! Steps that send what no well-behaved sender does.

pub mod flood;
pub mod replay;
pub mod replay_first;
pub mod stray;
pub mod throw;
