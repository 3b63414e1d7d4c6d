//! The keys of TLS session tickets, which data servers of the same services tell each other.
//!
//! ```text
//!  agent 1 --all keys that it knows--> daemon 1 ==its own keys==> daemon 2 --all keys that it knows--> agent 2
//! ```
//!
//! A daemon has the keys in its memory only. A process that takes over, or is started again, gets them from it, and a
//! daemon that is started again gets them from the process.

use std::net::Ipv4Addr;

use baton_agent::terminate::{messages::Secret, tickets::now};
use baton_streams::Topic;
use baton_tls::NodeKeys;
use tracing::warn;

use super::TlsAgent;
use crate::daemon::Daemon;

impl Daemon {
    /// Tells the ticket keys of this data server to the others of its services, and forgets all keys that are too old.
    pub(crate) fn tell_ticket_keys(&mut self) {
        let Some(server) = &self.data_server else {
            return;
        };
        let text = server.tls_agent.own_ticket_keys();
        let nodes = self.nodes_with_same_tls();
        if !nodes.is_empty() {
            self.tell_nodes(&nodes, Topic::TicketKeys, &text);
        }
        self.streams.tell_no_others(&nodes, Topic::TicketKeys);
    }

    /// Takes note of the ticket keys of another data server.
    pub(crate) fn hear_ticket_keys(&mut self, from: Ipv4Addr, text: &[u8]) {
        let node = self.local.config.node_at(from.into());
        let (Some(server), true) = (
            &self.data_server,
            node.is_some_and(|node| node.roles.is_ds()),
        ) else {
            return;
        };
        match NodeKeys::read(text) {
            Some(keys) => server.tls_agent.hear_ticket_keys(from, keys),
            None => {
                warn!(%from, "cannot read this node's keys of TLS tickets: does it run another release of baton?");
            }
        }
    }

    /// The other data servers of those services of this one for which agents speak TLS.
    fn nodes_with_same_tls(&self) -> Vec<Ipv4Addr> {
        let config = &self.local.config;
        (config.services_of(&self.local.me.name))
            .filter(|service| service.terminate.is_some())
            .flat_map(|service| config.data_servers_of(service))
            .filter_map(|node| node.address.ipv4())
            .filter(|node| *node != self.local.address)
            .collect()
    }
}

impl TlsAgent {
    /// The keys that are made here, for the other data servers. Keys that are too old are forgotten.
    fn own_ticket_keys(&self) -> Secret {
        let known = &self.context.ticket_keys;
        known.send_if_modified(|ring| ring.forget(now()));
        let ring = known.borrow();
        ring.own().map(NodeKeys::write).unwrap_or_default()
    }

    fn hear_ticket_keys(&self, from: Ipv4Addr, keys: NodeKeys) {
        let known = &self.context.ticket_keys;
        known.send_if_modified(|ring| ring.hear(from, keys, now()));
    }
}
