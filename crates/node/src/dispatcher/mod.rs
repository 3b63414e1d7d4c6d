//! Both ends of the papers' dispatcher: the server that chooses for the data servers of other nodes, and the client
//! that asks it.

pub mod client;
pub mod server;
