//! From configuration and membership to the programs' maps.

mod pools;
mod routes;
mod services;
mod settings;
mod ways;

pub use services::{endpoint, policy, pools, service_at, services_with_places};
pub use ways::{data_server_addresses, node_addresses};

use std::{
    collections::HashMap,
    net::{Ipv4Addr, SocketAddrV4},
    time::Duration,
};

use anyhow::Result;
use baton_abi::ROLE_CS;
use baton_core::{
    Moment,
    slots::{Slot, Slots},
};
use baton_dataplane::Dataplane;
use baton_net::Hop;
use baton_wire::Address;

use pools::Pools;

/// What is in the maps, and how to change it.
pub struct Tables {
    ids: HashMap<SocketAddrV4, u16>,
    pools: Pools,
    slots: Slots,
    hops: HashMap<Address, Hop>,
    senders: HashMap<Ipv4Addr, [u8; 6]>,
    relay_port: u16,
}

impl Tables {
    /// Tables over maps that may hold what an earlier daemon left: services keep their ids, pools their
    /// indices and data servers their slots, because TCB entries name them.
    pub fn over(
        dataplane: &Dataplane,
        roles: u32,
        now: Moment,
        quarantine: Duration,
    ) -> Result<Self> {
        let ids = dataplane
            .services()?
            .into_iter()
            .filter(|(key, _)| key.be_port != 0)
            .map(|(key, service)| (key.socket_address(), service.id))
            .collect();
        let taken = dataplane
            .data_servers()?
            .into_iter()
            .filter_map(|(index, server)| {
                Some((
                    Slot::from(u8::try_from(index).ok()?),
                    Address::from_octets(server.address),
                ))
            })
            .collect::<Vec<_>>();
        let slots = Slots::restored(now, quarantine, taken);
        let pools = if roles & ROLE_CS == 0 {
            Pools::default()
        } else {
            Pools::over(dataplane)?
        };
        Ok(Self {
            ids,
            pools,
            slots,
            hops: HashMap::new(),
            senders: HashMap::new(),
            relay_port: 0,
        })
    }

    /// The daemon's listener for servers with MPTCP listeners; takes effect with the next settings.
    pub fn relay_at(&mut self, port: u16) {
        self.relay_port = port;
    }
}
