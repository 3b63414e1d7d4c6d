//! Looks up the way to the node that takes over, so that requests can go on there.

use std::net::Ipv4Addr;

use baton_abi::DataServer;
use baton_net::{Hop, Link, Netlink};

use crate::{local_node::LocalNode, network::next_hops, tables};

pub struct Ways {
    netlink: Netlink,
    link: Link,
}

impl Ways {
    pub fn of(local: &LocalNode) -> Self {
        Self {
            netlink: local.netlink.clone(),
            link: local.link.clone(),
        }
    }

    /// Returns the way to a node; `None` if the node is on another LAN, because a request gets only a new Ethernet
    /// header.
    pub async fn to(&self, node: Ipv4Addr) -> Option<DataServer> {
        let (_, hop) = next_hops::look(&self.netlink, &[node]).await.pop()?;
        let hop = hop.filter(|hop| matches!(hop, Hop::Next(next) if !next.routed))?;
        Some(tables::data_server(node, &hop, &self.link, 0))
    }
}
