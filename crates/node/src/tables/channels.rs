//! Which channel leads to which node. A daemon keeps the channels of the daemon before it, whose numbers go on.

use std::{collections::BTreeMap, net::Ipv4Addr};

use anyhow::Result;
use baton_abi::DataServer;
use baton_dataplane::{Channels as Maps, Dataplane};
use baton_wire::Address;

/// The channels in use: the channel's number by the address of the other node.
#[derive(Default)]
pub struct Channels(BTreeMap<Ipv4Addr, u16>);

impl Channels {
    /// Begins with the channels of an earlier daemon.
    pub fn over(dataplane: &Dataplane) -> Result<Self> {
        let mut ways = Vec::new();
        if dataplane.as_connection_server().is_some() {
            ways.extend(dataplane.data_servers()?.into_iter().map(|(_, way)| way));
        }
        if let Some(server) = dataplane.as_data_server() {
            ways.extend(server.peers()?);
        }
        Ok(Self(ways.iter().filter_map(used).collect()))
    }

    /// The channel to a node. A node that has none gets a new one. 0 means none: all channels are in use.
    pub fn to(&mut self, address: Ipv4Addr) -> u16 {
        if let Some(channel) = self.0.get(&address) {
            return *channel;
        }
        let free = (1..=Maps::COUNT).find(|free| self.0.values().all(|used| used != free));
        if let Some(free) = free {
            self.0.insert(address, free);
        }
        free.unwrap_or(0)
    }

    /// All channels in use, each with its node.
    pub fn list(&self) -> Vec<(Ipv4Addr, u16)> {
        self.0
            .iter()
            .map(|(node, channel)| (*node, *channel))
            .collect()
    }
}

fn used(way: &DataServer) -> Option<(Ipv4Addr, u16)> {
    match Address::from_octets(way.address).ip() {
        std::net::IpAddr::V4(address) if way.channel != 0 => Some((address, way.channel)),
        _ => None,
    }
}
