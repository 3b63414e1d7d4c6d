//! Writing the programs' maps from configuration and membership.

mod channels;
mod maglev_slots;
mod numbers;
mod policies;
mod pools;
mod rings;
mod route_numbers;
mod routes;
mod services;
pub mod settings;
mod ways;

pub use policies::{policy, pools};
pub use routes::check as check_routes;
pub use ways::{connection_server_addresses, data_server, data_server_addresses, node_addresses};

use std::{
    collections::{HashMap, HashSet},
    net::{Ipv4Addr, SocketAddrV4},
    time::Duration,
};

use anyhow::{Context as _, Result};
use baton_agent::{
    reader::{Protocol, Served},
    terminate::judge::JudgedService,
};
use baton_config::{ClientProtocol, UnknownName};
use baton_core::{
    Moment,
    slots::{Slot, Slots},
};
use baton_dataplane::{Dataplane, Routing, Tallied};
use baton_net::Hop;
use baton_wire::Address;
use tokio::sync::watch;

use crate::places::Placed;

use channels::Channels;
use maglev_slots::MaglevSlots;
use pools::Pools;
pub use pools::{AllChoices, PoolId, stable_hash};
pub use route_numbers::RouteId;
use route_numbers::RouteNumbers;

/// The maps of pools, routes and choices. Only connection servers and data servers have them; on other nodes this is
/// an error.
fn routing_of(dataplane: &Dataplane) -> Result<&Routing> {
    (dataplane.routing()).context("this node has no role that routes requests")
}

/// What the programs' maps hold, and the methods that change it.
pub struct Tables {
    /// The id of each service.
    ids: HashMap<SocketAddrV4, u16>,
    /// Whether no data server answers for a service, by the service's address.
    down: HashMap<SocketAddrV4, bool>,
    pools: Pools,
    route_numbers: RouteNumbers,
    maglev_slots: MaglevSlots,
    /// On a data server, the data servers that are not heard, and since when.
    silent_since: HashMap<Address, Moment>,
    slots: Slots,
    channels: Channels,
    /// The last known way to each node that has a slot.
    hops: HashMap<Address, Hop>,
    /// The MAC addresses of connection servers on this LAN.
    senders: HashMap<Ipv4Addr, [u8; 6]>,
    relay_port: u16,
    resume_port: u16,
    reader_port: u16,
    /// Nodes that are taken for dead.
    dead: HashSet<Address>,
    /// Nodes that refuse messages because of their clock.
    deaf: HashSet<Address>,
}

impl Tables {
    /// Makes the tables over maps that may hold what an earlier daemon left: services keep their ids, pools their
    /// indices, routes their numbers and data servers their slots, because TCB entries name them; channels keep their
    /// numbers.
    pub fn over(dataplane: &Dataplane, now: Moment, quarantine: Duration) -> Result<Self> {
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
        let maglev_slots = match dataplane.as_switch() {
            Some(switch) => MaglevSlots::over(switch, taken.is_empty())?,
            None => MaglevSlots::default(),
        };
        let slots = Slots::restored(now, quarantine, taken);
        let (pools, route_numbers) = match dataplane.routing() {
            Some(routing) => (Pools::over(routing)?, RouteNumbers::over(routing)?),
            None => (Pools::with(Vec::new()), RouteNumbers::with([])),
        };
        // Until this process has listeners of its own, nobody listens at an earlier process's ports. The programs drop
        // what is for these, and it comes again. Without ports they would end connections and refuse responses.
        let before = dataplane.settings()?;
        Ok(Self {
            ids,
            down: HashMap::new(),
            pools,
            route_numbers,
            maglev_slots,
            silent_since: HashMap::new(),
            slots,
            channels: Channels::over(dataplane)?,
            hops: HashMap::new(),
            senders: HashMap::new(),
            relay_port: 0,
            resume_port: before.resume_port,
            reader_port: before.reader_port,
            dead: HashSet::new(),
            deaf: HashSet::new(),
        })
    }

    /// The other nodes, each with the number of the channel to it.
    pub fn channels(&self) -> Vec<(Ipv4Addr, u16)> {
        self.channels.list()
    }

    /// Where a pool of the service at `at` is tallied. Without a name this is the service's own pool. `None`: the pool
    /// has no index.
    pub fn tallied_pool(&self, at: SocketAddrV4, name: Option<&str>) -> Option<Tallied> {
        self.pools.found(PoolId::new(at, name)).map(Tallied::Pool)
    }

    /// Where a route of the service at `at` is tallied. `None`: the route has no number.
    pub fn tallied_route(&self, at: SocketAddrV4, route: &baton_config::Route) -> Option<Tallied> {
        let number = self.route_numbers.number(RouteId::new(at, route));
        number.map(Tallied::Route)
    }

    /// Sets the port of the daemon's listener that relays to MPTCP servers. It takes effect when settings are written.
    pub fn set_relay_port(&mut self, port: u16) {
        self.relay_port = port;
    }

    /// Sets the port of the agent's listener that resumes responses. It takes effect when settings are written.
    pub fn set_resume_port(&mut self, port: u16) {
        self.resume_port = port;
    }

    /// Sets the port of the agent's listener that reads requests. It takes effect when settings are written.
    pub fn set_reader_port(&mut self, port: u16) {
        self.reader_port = port;
    }

    /// The choices of all pools, for those who choose in user space.
    pub fn choices(&self) -> watch::Receiver<AllChoices> {
        self.pools.choices()
    }

    /// How rules name these services. A service that they do not know is left out.
    pub fn judged(&self, services: &[Placed<'_>]) -> Vec<JudgedService> {
        let of = |(at, _): &Placed<'_>| {
            Some(JudgedService {
                address: *at,
                id: *self.ids.get(at)?,
                pool: self.pools.found(PoolId::new(*at, None))?,
            })
        };
        services.iter().filter_map(of).collect()
    }

    /// What the agent that reads requests needs to know of these services. A service without an id is left out.
    pub fn served(&self, services: &[Placed<'_>]) -> HashMap<SocketAddrV4, Served> {
        let served = |(at, service): &Placed<'_>| {
            let served = Served {
                id: *self.ids.get(at)?,
                protocol: match service.protocol {
                    ClientProtocol::Http => Protocol::Http,
                    ClientProtocol::Tls => Protocol::Tls,
                },
                head_timeout: service.head_timeout,
                refuses_unknown_names: service.unknown_name == UnknownName::Refuse,
            };
            Some((*at, served))
        };
        services.iter().filter_map(served).collect()
    }
}
