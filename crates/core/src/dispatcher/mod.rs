//! Both ends of the papers' dispatcher as state machines: the server that chooses for the data servers of other nodes,
//! and the client that asks it.

mod client;
mod server;

pub use client::{Counts, DEAD_AFTER, DispatcherClient, REST, ReplyOutcome};
pub use server::{DispatcherServer, LIFETIME};
