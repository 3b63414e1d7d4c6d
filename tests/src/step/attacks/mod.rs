//! Steps that send what no well-behaved sender would send.

pub mod flood;
pub mod replay;
pub mod replay_first;
pub mod stray;
pub mod throw;
