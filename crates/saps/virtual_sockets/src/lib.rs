//! Virtual TCP sockets (SAPS: Matsuba and Ishikawa, "Single IP Address Cluster for Internet Servers", 2007). Programs
//! on an application node take them for TCP connections of the cluster address; their TCP is at an I/O server.
//! Programs of any language work, neither changed nor linked anew: their sockets are real ones, over loopback, to this
//! agent, which joins each to its far end.
//!
//! ```text
//!  program --connect()--> hooks of its control group --SYN held, event--> agent --Far::connect--> I/O server
//!  program <==established, or the far end's error=======================  agent <==============>
//!
//!  program --listen()---> hooks ----------------event------------------> agent --Far::listen---> I/O server
//!  program <==accept(), with the client's own address===================  agent <==============> client
//! ```
//!
//! Everything acts on the network namespace of the calling thread, so all threads of a runtime must be in the same
//! one.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may panic"))]

mod agent;
mod answer;
mod arrivals;
mod calls;
mod counters;
mod error;
mod far;
mod forwarding;
mod group;
mod options;
mod port;
mod refusal;
mod refused;
mod relay;
mod shared;

pub use agent::{Agent, Settings, take_back};
pub use baton_dataplane::AppOptions;
pub use baton_saps::{Accepted, Connected, Family, TakenPort};
pub use counters::Counters;
pub use error::Error;
pub use far::{Far, FarListening, FarStream};
pub use group::Group;
pub use refused::{RefusedPort, RefusedPorts};

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;
