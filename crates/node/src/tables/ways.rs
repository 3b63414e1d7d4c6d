//! The ways to other nodes: data servers for a connection server, connection servers for a switch, all
//! nodes for a data server.

use std::{collections::HashMap, net::Ipv4Addr};

use anyhow::Result;
use baton_abi::{
    DATA_SERVER_ASKED_FOR, DATA_SERVER_DEAD, DATA_SERVER_DEAF, DATA_SERVER_LOCAL,
    DATA_SERVER_PRESENT, DATA_SERVER_ROUTED, DataServer,
};
use baton_config::Config;
use baton_core::Moment;
use baton_dataplane::{Dataplane, Tallied};
use baton_net::{Hop, Link};
use baton_wire::{Address, KeyRing};

use super::Tables;
use crate::local_node::LocalNode;

impl Tables {
    /// Gives these nodes slots. Nodes of an earlier configuration keep serving the connections that they have.
    pub fn assign_slots(&mut self, now: Moment, addresses: &[Ipv4Addr]) -> Result<()> {
        Ok(self
            .slots
            .assign(now, addresses.iter().map(|address| Address::from(*address)))?)
    }

    /// Forgets the MAC addresses of connection servers that have left the configuration. The program hears of it with
    /// the next way that is written.
    pub fn forget_senders(&mut self, config: &Config) {
        (self.senders).retain(|address, _| is_connection_server(config, *address));
    }

    /// Writes the way to another node, or notes that there is none. Then the entry in the map stays for the node's
    /// connections: the way may come back, and their packets would have nowhere else to go.
    pub fn write_hop(
        &mut self,
        dataplane: &Dataplane,
        local: &LocalNode,
        keys: &KeyRing,
        (address, hop): (Ipv4Addr, Option<Hop>),
    ) -> Result<()> {
        let Some(hop) = hop else {
            self.hops.remove(&address.into());
            return Ok(());
        };
        let channel = match hop {
            // Messages that stay on this node are not lost, so they need no channel.
            Hop::Local => 0,
            Hop::Next(_) => self.channels.to(address),
        };
        let mut way = data_server(address, &hop, &local.link, channel);
        way.key = keys.with(address).current.words();
        let is_cs = is_connection_server(&local.config, address);
        if let Some(server) = dataplane.as_data_server() {
            server.set_peer(address, &way)?;
            self.write_sender(server, address, &way, is_cs)?;
        }
        // Clients' packets go to another connection server inside messages, because it would take a bare packet for one
        // of its own.
        if is_cs && hop != Hop::Local {
            way.flags |= DATA_SERVER_ROUTED as u8; // a bit that C keeps in a byte
        }
        if self.dead.contains(&address.into()) {
            way.flags |= DATA_SERVER_DEAD as u8; // a bit that C keeps in a byte
        }
        if self.deaf.contains(&address.into()) {
            way.flags |= DATA_SERVER_DEAF as u8; // a bit that C keeps in a byte
        }
        if let Some(slot) = self.slots.slot(address.into()) {
            if local.me.roles.is_cs() && dataplane.data_server(slot.into())?.address != way.address
            {
                dataplane.clear_tally(Tallied::DataServer(slot.into()))?;
            }
            dataplane.set_data_server(slot.into(), &way)?;
            self.hops.insert(address.into(), hop);
        }
        Ok(())
    }

    /// Marks a data server as dead, or as alive again.
    pub fn mark_dead(&mut self, dataplane: &Dataplane, address: Address, dead: bool) -> Result<()> {
        if dead {
            self.dead.insert(address);
        } else {
            self.dead.remove(&address);
        }
        self.mark(dataplane, address, DATA_SERVER_DEAD as u8, dead) // a bit that C keeps in a byte
    }

    /// Marks a dead data server while the others are asked for its connections, or unmarks it afterwards.
    pub fn mark_asked_for(
        &self,
        dataplane: &Dataplane,
        address: Address,
        asked: bool,
    ) -> Result<()> {
        self.mark(dataplane, address, DATA_SERVER_ASKED_FOR as u8, asked) // a bit that C keeps in a byte
    }

    /// Marks a data server that refuses messages because of their clock, or unmarks it when it takes them again.
    pub fn mark_deaf(&mut self, dataplane: &Dataplane, address: Address, deaf: bool) -> Result<()> {
        let changed = if deaf {
            self.deaf.insert(address)
        } else {
            self.deaf.remove(&address)
        };
        if !changed {
            return Ok(());
        }
        self.mark(dataplane, address, DATA_SERVER_DEAF as u8, deaf) // a bit that C keeps in a byte
    }

    fn mark(&self, dataplane: &Dataplane, address: Address, flag: u8, is_on: bool) -> Result<()> {
        let Some(slot) = self.slot(address) else {
            return Ok(());
        };
        let mut way = dataplane.data_server(slot)?;
        if u32::from(way.flags) & DATA_SERVER_PRESENT == 0 {
            return Ok(());
        }
        way.flags = if is_on {
            way.flags | flag
        } else {
            way.flags & !flag
        };
        Ok(dataplane.set_data_server(slot, &way)?)
    }

    /// Notes a connection server's MAC address, if no router is between, and tells the program all of these: frames
    /// from them that hold no message may be clients' packets that were forwarded.
    fn write_sender(
        &mut self,
        server: &baton_dataplane::DataServer,
        address: Ipv4Addr,
        way: &DataServer,
        is_cs: bool,
    ) -> Result<()> {
        if is_cs && u32::from(way.flags) & DATA_SERVER_ROUTED == 0 {
            self.senders.insert(address, way.mac);
        } else {
            self.senders.remove(&address);
        }
        let senders: Vec<_> = (self.senders.iter())
            .map(|(address, mac)| (*mac, *address))
            .collect();
        Ok(server.set_senders(&senders)?)
    }

    /// The slots of all data servers, by address.
    pub fn slots_of(&self, local: &LocalNode) -> HashMap<Address, u16> {
        let addresses = local.config.data_servers().map(|node| node.address.ip());
        addresses
            .filter_map(|ip| Some((ip.into(), self.slot(ip.into())?)))
            .collect()
    }

    /// The addresses of all data servers, by slot.
    pub fn addresses(&self, local: &LocalNode) -> HashMap<u16, Ipv4Addr> {
        data_server_addresses(&local.config)
            .into_iter()
            .filter_map(|address| Some((self.slot(address.into())?, address)))
            .collect()
    }

    /// Whether the way to a node with a slot is known.
    pub fn reachable(&self, address: Address) -> bool {
        self.hops.contains_key(&address)
    }

    /// The slot of a node.
    pub fn slot(&self, address: Address) -> Option<u16> {
        self.slots.slot(address).map(u16::from)
    }
}

fn is_connection_server(config: &Config, address: Ipv4Addr) -> bool {
    (config.node_at(address.into())).is_some_and(|node| node.roles.is_cs())
}

/// The IPv4 addresses of all data servers.
pub fn data_server_addresses(config: &Config) -> Vec<Ipv4Addr> {
    ipv4(config.data_servers())
}

/// The IPv4 addresses of all connection servers.
pub fn connection_server_addresses(config: &Config) -> Vec<Ipv4Addr> {
    ipv4(config.connection_servers())
}

/// The IPv4 addresses of all nodes.
pub fn node_addresses(config: &Config) -> Vec<Ipv4Addr> {
    ipv4(config.nodes.iter())
}

fn ipv4<'a>(nodes: impl Iterator<Item = &'a baton_config::Node>) -> Vec<Ipv4Addr> {
    nodes.filter_map(|node| node.address.ipv4()).collect()
}

/// The map entry for the way to a node.
pub fn data_server(address: Ipv4Addr, hop: &Hop, own: &Link, channel: u16) -> DataServer {
    let (mac, source_mac, ifindex, flags) = match hop {
        Hop::Local => (own.mac, own.mac, own.index, DATA_SERVER_LOCAL),
        Hop::Next(next) => {
            let flags = if next.routed { DATA_SERVER_ROUTED } else { 0 };
            (next.mac, next.source_mac, next.link_index, flags)
        }
    };
    DataServer {
        address: Address::from(address).octets(),
        mac,
        source_mac,
        ifindex,
        flags: (DATA_SERVER_PRESENT | flags) as u8, // bits that C keeps in a byte
        channel,
        ..DataServer::default()
    }
}
