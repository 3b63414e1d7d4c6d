//! SAPS: one I/O server owns the cluster address and its TCP; programs on application nodes have virtual
//! sockets (Matsuba and Ishikawa, "Single IP Address Cluster for Internet Servers", 2007).
//!
//! ```text
//!  client <==TCP==> IoServer: socket -- pump -- VirtualStream
//!                                                   |  Channel (baton_saps_protocol)
//!                                   ForwardingNetwork: TCP or QUIC, one link for each node
//!                                                   |  Channel
//!                   Agent: Listening::accept, connect --> VirtualStream <--> program
//! ```
//!
//! `baton_saps_protocol` decides what a channel does, and `baton_saps_protocol::wire` encodes its frames. This crate
//! has the sockets.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may panic"))]

mod agent;
mod events;
mod io_server;
mod link;
mod network;
mod options;
mod shared;
mod stream;

pub use agent::{Agent, AgentSettings, ChannelReport, Listening};
pub use baton_saps_protocol::wire::{Families as Family, SocketOptions, TakenPort};
pub use baton_saps_protocol::{Counters, Gauges, PortPolicy};
pub use io_server::{IoCounters, IoReport, IoServer, IoSettings};
pub use network::NetworkKind;
pub use stream::{Accepted, Connected, StreamOptions, VirtualStream};
