//! The sections of `baton.toml`, except services.

pub mod cluster;
pub mod cs;
pub mod failover;
pub mod forwarding;
pub mod key;
pub mod local;
pub mod node;
pub mod node_keys;
pub mod roles;
pub mod xdp;
