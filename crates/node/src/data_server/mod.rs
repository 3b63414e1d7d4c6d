//! What only a data server's daemon does: it checks its server's health, runs the agent that reads requests, and looks
//! after the servers of its own host.

pub mod address_translation;
pub mod agent;
pub mod containers;
pub mod current_rules;
pub mod deconfigured;
pub mod document_root;
pub mod door_tallies;
pub mod early_packets;
pub mod empty_ack;
pub mod health_checks;
pub mod idle_handover;
pub mod mptcp_relay;
pub mod tls_agent;

use baton_net::Connections;

use self::{containers::Containers, health_checks::Checks, tls_agent::TlsAgent};

/// What the daemon of a data server has besides what every daemon has.
pub struct DataServer {
    /// The health checks of the servers on this host, one task for each service that has a check.
    pub checks: Checks,
    /// The relay to servers whose listeners are MPTCP, where this host has MPTCP.
    pub relay: Option<mptcp_relay::Running>,
    /// The agent that reads requests, once there is a service whose requests it may have to read.
    pub agent: Option<agent::Running>,
    /// The relays to servers in containers.
    pub containers: Containers,
    /// The process that speaks TLS in place of servers.
    pub tls_agent: TlsAgent,
    /// The number of connections that each service has here, as counted last.
    pub connections: Connections,
}

impl DataServer {
    /// Makes the state of a data server on which only the checks are set up.
    pub fn new(checks: Checks, tls_agent: TlsAgent) -> Self {
        Self {
            checks,
            relay: None,
            agent: None,
            containers: Containers::default(),
            tls_agent,
            connections: Connections::default(),
        }
    }
}
