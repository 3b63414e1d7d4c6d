//! The papers' dispatcher, both ends: the server that chooses for the data servers of other nodes, and the client that
//! asks it.

pub mod client;
pub mod server;
