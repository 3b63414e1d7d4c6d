//! The cluster's configuration: `baton.toml`, parsed into types that cannot hold a wrong one.
//!
//! One file describes the whole cluster and every node reads the same one. Parsing goes in three
//! steps, and each step reports everything it finds, not only its first complaint:
//!
//! 1. `document`: text to the raw schema (`raw`): syntax, unknown keys, values of the wrong type.
//! 2. One module a section (`cluster`, `node`, `service`, …): each value becomes its own type.
//! 3. `whole`: what must hold between the parts: references, duplicates, address families.
//!
//! Only [`Config::read`] touches a file system; [`Config::parse`] is given all it needs.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may panic"))]

mod address;
mod cluster;
mod config;
mod cs;
mod diff;
mod document;
mod duration;
mod field;
mod health;
mod key;
mod local;
mod name;
mod node;
mod number;
mod problem;
mod raw;
mod read;
mod report;
mod service;
mod whole;

pub use address::{ClusterAddress, NodeAddress};
pub use cluster::Cluster;
pub use config::Config;
pub use cs::ConnectionServer;
pub use diff::{Changes, ListChange, RestartReason, diff};
pub use health::{HealthCheck, HttpPath, Probe};
pub use local::Local;
pub use name::{InterfaceName, NodeName, ServiceName};
pub use node::{Node, Roles};
pub use number::{Protocol, WindowScale};
pub use problem::{Diagnostic, Error, Place, Problem};
pub use read::{KeyFile, Loaded, Source};
pub use service::{Policy, Service, Split};
