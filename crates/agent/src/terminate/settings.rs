//! What the daemon wants of the process that speaks TLS, and what that reports.

use std::net::SocketAddrV4;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What the daemon orders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// Serve exactly these services from now on, each of which has an address of its own. Connections of other services
    /// go on to their ends.
    Serve(Vec<ServiceSettings>),
    /// End at once, with all connections.
    End,
}

/// One service that TLS clients reach.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceSettings {
    /// The name in the configuration, for messages.
    pub name: String,
    /// The cluster address and port.
    pub address: SocketAddrV4,
    /// The port at which the local server listens, at the cluster address.
    pub server_port: u16,
    /// The files with certificates and their keys.
    pub certificates: Vec<PathBuf>,
    /// The longest time that a handshake, or the head of a request, may take.
    pub head_timeout: Duration,
    /// The mark of [`crate::Routing`].
    pub mark: u32,
    /// Whether the daemon says for each request which data server is to answer it.
    pub judges: bool,
}

/// What the process answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Report {
    /// The settings are in use. `warnings` are about certificates.
    Applied {
        /// What an operator should change.
        warnings: Vec<String>,
    },
    /// The settings cannot be used, and those from before stay in use.
    Refused {
        /// What is wrong, where, and what to do.
        why: String,
    },
}
