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
mod condition;
mod config;
mod cs;
mod diff;
mod document;
mod duration;
mod failover;
mod field;
mod forwarding;
mod health;
mod host;
mod interfaces;
mod key;
mod large;
mod local;
mod mac;
mod members;
mod name;
mod node;
mod node_keys;
mod number;
mod overflow;
mod path;
mod policy;
mod pool;
mod problem;
mod raw;
mod read;
mod relay_to;
mod report;
mod route;
mod service;
mod size;
mod weights;
mod whole;
mod xdp;

pub use address::{ClusterAddress, NodeAddress};
pub use cluster::Cluster;
pub use condition::{Conditions, Expression, Pattern};
pub use config::Config;
pub use cs::ConnectionServer;
pub use diff::{Changes, ListChange, RestartReason, diff};
pub use failover::{Failover, FrontAddress};
pub use forwarding::{Forwarding, ForwardingNetwork, ForwardingPolicy};
pub use health::{HealthCheck, HttpPath, Probe};
pub use host::{HostName, HostPattern};
pub use key::Key;
pub use large::Large;
pub use local::Local;
pub use mac::MacAddress;
pub use members::Members;
pub use name::{InterfaceName, NodeName, PoolName, ServiceName};
pub use node::{Node, Roles};
pub use node_keys::NodeKeys;
pub use number::{Protocol, WindowScale};
pub use overflow::Overflow;
pub use path::PathPrefix;
pub use policy::Policy;
pub use pool::Pool;
pub use problem::{Diagnostic, Error, Place, Problem};
pub use read::{KeyFile, Loaded, Source};
pub use relay_to::RelayTo;
pub use route::Route;
pub use service::{Handover, Service, Split};
pub use weights::Weights;
pub use xdp::Xdp;
