//! What only a data server's daemon does: its health checks, the agent that reads requests, and the servers of its own
//! host.

pub mod address_translation;
pub mod agent;
pub mod containers;
pub mod deconfigured;
pub mod document_root;
pub mod door_tallies;
pub mod early_packets;
pub mod health_checks;
pub mod mptcp_relay;
pub mod slow_path;
