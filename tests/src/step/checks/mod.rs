//! Steps that check the effects of other steps.

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
