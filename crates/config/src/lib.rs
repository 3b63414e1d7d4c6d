//! The cluster's configuration: `baton.toml`, parsed into types that cannot hold a wrong one.
//!
//! One file describes the whole cluster, and every node reads the same file. Parsing has three
//! steps, and each step reports everything that it finds, not only the first error:
//!
//! 1. `document` turns the text into TOML values, and reports syntax errors.
//! 2. One module for each section (`cluster`, `node`, `service`, …) turns each value into its own type. It declares its
//!    keys in a table (`schema`), from which the commented `baton.toml` and the manual page are made as well.
//! 3. `whole` checks what must hold between the parts: references, duplicates, address families.
//!
//! Only [`Config::read`] touches a file system; [`Config::parse`] is given all it needs.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may panic"))]

mod config;
mod diff;
#[cfg(test)]
mod documents;
#[cfg(feature = "example")]
mod example;
mod reading;
mod sections;
mod service;
mod values;
mod whole;

pub use crate::reading::problem::{Diagnostic, Error, Place, Problem};
pub use crate::reading::read::{KeyFile, Source};
pub use crate::sections::cluster::Cluster;
pub use crate::sections::cs::ConnectionServer;
pub use crate::sections::failover::{Failover, FrontAddress};
pub use crate::sections::forwarding::{Forwarding, ForwardingNetwork, ForwardingPolicy};
pub use crate::sections::key::Key;
pub use crate::sections::local::Local;
pub use crate::sections::node::Node;
pub use crate::sections::node_keys::NodeKeys;
pub use crate::sections::roles::Roles;
pub use crate::sections::xdp::Xdp;
pub use crate::service::condition::{Conditions, Expression, Pattern};
pub use crate::service::health::{HealthCheck, HttpPath, Probe};
pub use crate::service::host::{HostName, HostPattern};
pub use crate::service::hsts::Hsts;
pub use crate::service::large::Large;
pub use crate::service::overflow::Overflow;
pub use crate::service::path::PathPrefix;
pub use crate::service::policy::Policy;
pub use crate::service::pool::Pool;
pub use crate::service::protocol::{ClientProtocol, UnknownName};
pub use crate::service::relay_to::RelayTo;
pub use crate::service::route::Route;
pub use crate::service::terminate::{ClientAddress, LocalServer, Terminate};
pub use crate::service::weights::Weights;
pub use crate::values::address::{ClusterAddress, NodeAddress};
pub use crate::values::mac::MacAddress;
pub use crate::values::members::Members;
pub use crate::values::name::{InterfaceName, NodeName, PoolName, ServiceName};
pub use crate::values::number::Protocol;
pub use config::{Config, Loaded};
pub use diff::{Changes, RestartReason, diff};
#[cfg(feature = "example")]
pub use example::example;
pub use service::{Handover, Service, Split};
