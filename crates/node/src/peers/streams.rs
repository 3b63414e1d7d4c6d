//! What the daemon tells other nodes by streams.

use std::net::Ipv4Addr;

use baton_streams::Topic;

use crate::daemon::Daemon;

impl Daemon {
    /// Tells all connection servers this text.
    pub(crate) fn tell_connection_servers(&mut self, topic: Topic, text: &[u8]) {
        let servers: Vec<Ipv4Addr> = (self.local.config.connection_servers())
            .filter_map(|node| node.address.ipv4())
            .collect();
        self.tell_nodes(&servers, topic, text);
    }

    /// Tells this text to these nodes, except this one. They must be nodes that judge requests, because no others are
    /// ever told anything.
    pub(crate) fn tell_nodes(&mut self, nodes: &[Ipv4Addr], topic: Topic, text: &[u8]) {
        let own = self.local.address;
        let all: Vec<Ipv4Addr> = (self.nodes_that_judge())
            .chain(self.nodes_with_tls())
            .filter(|node| *node != own)
            .collect();
        self.streams.tell_only(&all);
        for node in nodes.iter().filter(|node| **node != own) {
            self.streams.tell(*node, topic, text);
        }
    }

    /// The data servers whose agents speak TLS. Connections may move to them, and they may know each other's ticket keys.
    fn nodes_with_tls(&self) -> impl Iterator<Item = Ipv4Addr> {
        let services = self.local.config.services.iter();
        services
            .filter(|service| service.terminate.is_some())
            .flat_map(|service| self.local.config.data_servers_of(service))
            .filter_map(|node| node.address.ipv4())
    }

    /// The nodes that judge requests: connection servers, and data servers that are to know what is large.
    pub(crate) fn nodes_that_judge(&self) -> impl Iterator<Item = Ipv4Addr> {
        let config = &self.local.config;
        (config.nodes.iter())
            .filter(|node| config.routes_by_size(node))
            .filter_map(|node| node.address.ipv4())
    }
}
