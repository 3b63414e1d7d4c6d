//! What the daemon tells other nodes of the large files here, and hears of theirs.

use std::{collections::BTreeMap, net::Ipv4Addr};

use anyhow::Result;
use baton_streams::Topic;
use baton_wire::LargePaths;
use tracing::{info, warn};

use super::WalkResult;
use crate::{
    daemon::Daemon,
    logging::logged,
    places::{endpoint, service_at, services_with_places},
};

impl Daemon {
    /// Takes note of what a walk has found here, and tells the other nodes if that is new.
    pub(crate) fn note_sizes(&mut self, looked: WalkResult) {
        if self.sizes.note(looked) {
            self.tell_sizes();
        }
    }

    /// Tells the nodes that judge requests, this one included, what is large here.
    pub(crate) fn tell_sizes(&mut self) {
        let Some(text) = self.sizes.text() else {
            return;
        };
        let own = self.local.address;
        let nodes: Vec<Ipv4Addr> = self.nodes_that_judge().collect();
        self.tell_nodes(&nodes, Topic::Sizes, &text);
        if nodes.contains(&own) {
            // A node tells itself without the network.
            self.hear_sizes(own, &text);
        }
    }

    /// Takes note of what is large at a data server, as that has told.
    pub(crate) fn hear_sizes(&mut self, from: Ipv4Addr, text: &[u8]) {
        let Some(told) = LargePaths::read(text) else {
            warn!(%from, "cannot read this node's list of large files: does it run another release of baton?");
            return;
        };
        if !self.routes_by_size() {
            return;
        }
        let before = self.large_counts();
        if self.sizes.known.handle(from.into(), told) {
            logged(self.write_sizes());
            for (name, count) in self.large_counts() {
                if before.get(&name) != Some(&count) {
                    info!(service = name, "{count} large file(s) in all");
                }
            }
        }
    }

    /// Whether this node is to know what is large on others.
    pub(crate) fn routes_by_size(&self) -> bool {
        self.local.config.routes_by_size(&self.local.me)
    }

    /// How many paths of each service are known to be large, by its name.
    fn large_counts(&self) -> BTreeMap<String, usize> {
        let services = self.local.config.services.iter();
        services
            .filter(|service| service.large.is_some())
            .filter_map(|service| {
                let at = service_at(service).ok()?;
                let cluster = self.peers.membership.cluster();
                let serves = |from, at| cluster.serves(from, at);
                let known = self.sizes.known.large(endpoint(at), serves);
                Some((service.name.to_string(), known.len()))
            })
            .collect()
    }

    /// Writes what is large to the program's tables.
    pub(crate) fn write_sizes(&mut self) -> Result<()> {
        let services = services_with_places(self.local.config.services.iter())?;
        let cluster = self.peers.membership.cluster();
        self.tables
            .write_large(&self.dataplane, &services, &self.sizes.known, cluster)
    }
}
