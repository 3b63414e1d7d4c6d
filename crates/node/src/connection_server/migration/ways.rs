//! The way to the node that takes over, for requests that are to go on there.

use std::net::Ipv4Addr;

use baton_abi::DataServer;
use baton_net::{Hop, Link, Netlink};

use crate::{local_node::Place, network::next_hops, tables};

pub struct Ways {
    netlink: Netlink,
    link: Link,
}

impl Ways {
    pub fn of(place: &Place) -> Self {
        Self {
            netlink: place.netlink.clone(),
            link: place.link.clone(),
        }
    }

    /// `None` to another LAN: an Ethernet header is all that is put around a request.
    pub async fn to(&self, node: Ipv4Addr) -> Option<DataServer> {
        let (_, hop) = next_hops::look(&self.netlink, &[node]).await.pop()?;
        let hop = hop.filter(|hop| matches!(hop, Hop::Next(next) if !next.routed))?;
        Some(tables::data_server(node, &hop, &self.link, 0))
    }
}
