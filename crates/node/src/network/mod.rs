//! This host's interfaces: whether they are there, what is announced on their networks, and the ways to other nodes.

pub mod announcer;
pub mod egress;
pub mod interface_watch;
pub mod next_hops;
