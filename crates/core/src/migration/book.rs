//! Translates entries between this node's table, which has indices of this node's maps, and messages, which have
//! addresses and ids.

use std::collections::HashMap;
use std::num::NonZeroU16;

use baton_abi::{
    LCCP_TCB_SACK, LCCP_TCB_WSCALE, MAX_SERVICES, NO_DATA_SERVER, Pool, SERVICE_OWNER, Service,
    ServiceKey, TCB_AT_DOOR, Tcb, TcbKey,
};
use baton_wire::{Address, Endpoint, EntryKey, LeftOut, ShortAddress, TcbEntry, WindowScales};

/// A data server as a table names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server {
    /// The data server's address.
    pub address: ShortAddress,
    /// Whether the data server is in the configuration now.
    pub present: bool,
}

/// What the indices of this node's maps mean, as of one moment.
#[derive(Clone, Debug, Default)]
pub struct Book {
    servers: Vec<Option<Server>>,
    pools: Vec<u64>,
    routes: Vec<u64>,
    services: HashMap<ServiceAt, Service>,
    server_index: HashMap<ShortAddress, u16>,
    pool_index: HashMap<u64, u16>,
    route_number: HashMap<u64, u16>,
}

/// Where a service is: its short address and port.
type ServiceAt = (u32, u16);

impl Book {
    /// Makes the book from the maps: data servers, pools and ids of routes by their indices, and the services.
    pub fn new(
        servers: Vec<Option<Server>>,
        pools: &[Pool],
        routes: Vec<u64>,
        services: impl IntoIterator<Item = (ServiceKey, Service)>,
    ) -> Self {
        let index = |at: usize| u16::try_from(at).unwrap_or(NO_DATA_SERVER as u16);
        let server_index = (servers.iter().enumerate())
            .filter_map(|(at, server)| server.map(|server| (at, server)))
            .filter(|(_, server)| server.present)
            .map(|(at, server)| (server.address, index(at)))
            .collect();
        let pool_index = (pools.iter().enumerate())
            .filter(|(_, pool)| pool.id != 0)
            .map(|(at, pool)| (pool.id, index(at)))
            .collect();
        let route_number = (routes.iter().enumerate())
            .filter(|(_, id)| **id != 0)
            .map(|(number, id)| (*id, index(number)))
            .collect();
        Self {
            servers,
            pools: pools.iter().map(|pool| pool.id).collect(),
            routes,
            services: (services.into_iter())
                .map(|(at, service)| ((at.cluster, u16::from_be(at.be_port)), service))
                .collect(),
            server_index,
            pool_index,
            route_number,
        }
    }

    /// An entry of this node's table as it travels, at the tick `now`. `None` if it cannot travel: its owner
    /// or its pool is not known here, or its MSS or window scales are impossible.
    pub fn export(&self, key: &TcbKey, tcb: &Tcb, now: u32) -> Option<TcbEntry> {
        let server = |index: u16| {
            let server = self.servers.get(usize::from(index)).copied().flatten();
            server.map(|server| server.address)
        };
        let pool = self.pools.get(usize::from(tcb.pool)).copied()?;
        let route = self.routes.get(usize::from(tcb.route)).copied();
        // This node's daemon ends a move in the middle of a response, and in this table only. Until then the last owner
        // has the connection, or sends its packets on and says so (MOVED). So that one travels as the owner.
        let last = server(tcb.previous).filter(|_| tcb.is_moving());
        let (owner, previous, state) = match last {
            Some(last) => (Some(last), None, tcb.state & !Tcb::MOVES),
            None => (server(tcb.owner), server(tcb.previous), tcb.state),
        };
        Some(TcbEntry {
            key: EntryKey {
                client: Endpoint {
                    address: Address::from_octets(key.client),
                    port: u16::from_be(key.be_client_port),
                },
                cluster: ShortAddress::from_word(key.cluster)?,
                port: u16::from_be(key.be_cluster_port),
            },
            pool,
            route: route.filter(|id| *id != 0),
            request_seq: tcb.request_seq,
            last_seq: tcb.last_seq,
            last_ack: tcb.last_ack,
            // A packet may have come since `now` was read.
            age: u32::try_from(now.wrapping_sub(tcb.seen).cast_signed()).unwrap_or(0),
            owner: owner?,
            previous,
            mss: NonZeroU16::new(tcb.mss)?,
            scales: WindowScales::told(tcb.options, tcb.snd_wscale, tcb.rcv_wscale).ok()?,
            sack: u32::from(tcb.options) & LCCP_TCB_SACK != 0,
            state,
            attempt: tcb.attempt,
        })
    }

    /// An entry that came in a message, as it is in this node's table at the tick `now`.
    ///
    /// A pool that is not known here becomes the service's own pool. What is not counted yet of the response up
    /// to here, the sender counts: it has the entry too.
    ///
    /// # Errors
    /// Says why the entry cannot be in this table.
    pub fn import(&self, entry: &TcbEntry, now: u32) -> Result<(TcbKey, Tcb), LeftOut> {
        let key = &entry.key;
        let service = (self.services)
            .get(&(key.cluster.word(), key.port))
            .ok_or(LeftOut::Service)?;
        let own_pool = service.pool;
        let at_door = u32::from(service.flags) & SERVICE_OWNER != 0;
        let owner = self.server_index.get(&entry.owner).copied();
        let previous = entry.previous.and_then(|of| self.server_index.get(&of));
        let pool = self.pool_index.get(&entry.pool).copied();
        let route = entry.route.and_then(|id| self.route_number.get(&id));
        let (client, cluster) = entry
            .scales
            .map_or((0, 0), |of| (of.client.shift(), of.cluster.shift()));
        let option = |is_set: bool, option: u32| if is_set { option as u8 } else { 0 };
        let tcb = Tcb {
            request_seq: entry.request_seq,
            last_seq: entry.last_seq,
            last_ack: entry.last_ack,
            seen: now.wrapping_sub(entry.age),
            owner: owner.ok_or(LeftOut::Owner)?,
            previous: previous.copied().unwrap_or(NO_DATA_SERVER as u16),
            pool: pool.unwrap_or(own_pool),
            mss: entry.mss.get(),
            snd_wscale: client,
            rcv_wscale: cluster,
            options: option(entry.sack, LCCP_TCB_SACK)
                | option(entry.scales.is_some(), LCCP_TCB_WSCALE),
            // Whether a door judges the requests is for this node's configuration to say.
            state: entry.state & !(TCB_AT_DOOR as u8) | option(at_door, TCB_AT_DOOR),
            // A number below MAX_SERVICES stands for requests that no route takes.
            route: route.copied().unwrap_or(service.id),
            counted: entry.last_ack,
            attempt: entry.attempt,
            ..Tcb::default()
        };
        let key = TcbKey {
            client: key.client.address.octets(),
            cluster: key.cluster.word(),
            be_client_port: key.client.port.to_be(),
            be_cluster_port: key.port.to_be(),
        };
        Ok((key, tcb))
    }
}

const _: () = assert!(MAX_SERVICES <= u16::MAX as u32);
