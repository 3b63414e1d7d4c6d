//! The relay for a server in a network namespace of its own, as in a container behind a bridge. No listener of this
//! host is such a server's, and the kernel adopts a connection only into a listener of the namespace where the packet
//! came in (`bpf_sk_assign_tcp_reqsk` in net/core/filter.c answers -ENETUNREACH otherwise). So the agent listens at the
//! cluster address itself, and joins each connection to a second one to the server's own address.
//!
//! ```text
//!  client:port <--(cluster address:80, adopted)--> agent <--(client:port)--> 172.17.0.2:80
//! ```
//!
//! The server's answers are addressed to the client, and they come to this host because it is the container's gateway.
//! A program on the interface to the container marks those answers that one of the relay's sockets waits for
//! (`bpf/data_server/relay_answer.h`), and the agent's routing rule keeps marked packets on this host. The sockets
//! themselves carry another mark ([`SOCKET_MARK`]), by which the program knows them. No routing rule exists for that
//! mark.

use std::net::SocketAddrV4;
use std::sync::Arc;

use baton_net::{Error, Result};

use crate::listener::Listener;
use crate::relay::{Counters, Relay};

pub use crate::server::SOCKET_MARK;

/// Makes a relay in place of a server that is in a container: it listens at `service`, where clients go, and will relay
/// to `server`. This host need not have the cluster address yet.
///
/// # Errors
/// [`Error::System`], for instance if another program listens at `service`.
pub fn relay(
    service: SocketAddrV4,
    server: SocketAddrV4,
    counters: Arc<Counters>,
) -> Result<Relay> {
    let listener = Listener::at(service).map_err(Error::system(format!(
        "listen at {service} for the relay to {server}"
    )))?;
    Ok(Relay::to_container(listener, server, counters))
}
