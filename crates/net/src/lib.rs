//! Everything between the daemon and its host's network, as a thin layer: links, addresses, routes and neighbors
//! through netlink, sysctls, the journal that undoes changes to the host, announcements, the socket for messages
//! between nodes, frames of clients, health probes, and what this host's firewall rules translate.
//!
//! Everything acts on the network namespace of the calling thread, so all threads of a runtime must be in the same one.
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may panic"))]

pub mod address_translation;
pub mod announce;
pub mod client_frame;
mod connections;
mod error;
mod host;
mod lccp_filter;
mod lccp_socket;
pub mod listeners;
pub mod netlink;
pub mod netns;
pub mod offload;
mod packet_socket;
pub mod probe;
pub mod queues;
mod readable;
mod sock_diag;
mod socket_cookie;
mod sysctl;
pub mod undo;
mod who_has;

pub use connections::Connections;
pub use error::Error;
pub use host::Host;
pub use lccp_socket::{LccpSocket, Received};
pub use netlink::Netlink;
pub use netlink::adapter::Adapter;
pub use netlink::events::LinkEvents;
pub use netlink::link::Link;
pub use netlink::neighbor::{Hop, NextHop};
pub use packet_socket::PacketSocket;
pub use readable::Readable;
pub use socket_cookie::socket_cookie;
pub use sysctl::Sysctl;
pub use undo::Undo;
pub use who_has::who_has;

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;
