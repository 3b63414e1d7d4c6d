//! Steps that look at what has come of the others.

pub mod counters;
pub mod log;
pub mod no_connections;
pub mod resets;
pub mod served;
pub mod shares;
pub mod snapshot;
pub mod sockets;
pub mod status;
pub mod tallied;
