//! From configuration and membership to the programs' maps.

use std::{collections::HashMap, net::Ipv4Addr, net::SocketAddrV4, time::Duration};

use anyhow::{Context, Result, bail};
use baton_abi::{
    CHOICE_BANKS, CHOICES_PER_SERVICE, DATA_SERVER_LOCAL, DATA_SERVER_PRESENT, DATA_SERVER_ROUTED,
    DataServer, LCCP_OVERHEAD_BYTES, MAX_SERVICES, SERVICE_SPLIT_AT_ACK, Service, ServiceKey,
    Settings,
};
use baton_config::{Config, Policy, Split};
use baton_core::{
    Moment,
    membership::UsableServer,
    selection::{self, Server},
    slots::{Slot, Slots},
};
use baton_dataplane::{Dataplane, wall_clock_offset};
use baton_net::{Hop, Link};
use baton_wire::{Address, ClusterKey, Endpoint};

use super::place::{Place, lccp_keys};

/// IPv4 and TCP headers without options.
const PLAIN_HEADERS: u32 = 40;

/// What is in the maps, and how to change it.
pub struct Tables {
    ids: HashMap<SocketAddrV4, u16>,
    choices: HashMap<u16, Vec<u16>>,
    banks: HashMap<u16, u32>,
    slots: Slots,
    hops: HashMap<Address, Hop>,
    relay_port: u16,
}

impl Tables {
    /// Tables over maps that may hold what an earlier daemon left: services keep their ids and data
    /// servers their slots, because TCB entries name both.
    pub fn over(dataplane: &Dataplane, now: Moment, quarantine: Duration) -> Result<Self> {
        let mut ids = HashMap::new();
        let mut banks = HashMap::new();
        for (key, service) in dataplane.services()? {
            if key.be_port != 0 {
                ids.insert(key.socket_address(), service.id);
                banks.insert(
                    service.id,
                    service.first_choice / CHOICES_PER_SERVICE % CHOICE_BANKS,
                );
            }
        }
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
        Ok(Self {
            ids,
            choices: HashMap::new(),
            banks,
            slots,
            hops: HashMap::new(),
            relay_port: 0,
        })
    }

    /// The daemon's listener for servers with MPTCP listeners; takes effect with the next settings.
    pub fn relay_at(&mut self, port: u16) {
        self.relay_port = port;
    }

    /// Writes what no service or data server changes: keys, clock, limits.
    pub fn write_settings(&self, dataplane: &Dataplane, place: &Place) -> Result<()> {
        let config = &place.config;
        let overhead = PLAIN_HEADERS + LCCP_OVERHEAD_BYTES;
        let mss = u16::try_from(place.link.mtu.saturating_sub(overhead)).unwrap_or(u16::MAX);
        let lccp = lccp_keys(config);
        let settings = Settings {
            cookie_key: [
                cookie_words(Some(&config.cluster.key)),
                cookie_words(config.cluster.previous_key.as_ref()),
            ],
            lccp_key: [
                lccp.current.words(),
                lccp.previous.map_or([0; 2], |key| key.words()),
            ],
            clock_offset_ns: wall_clock_offset(),
            clock_window_ns: nanoseconds(config.cluster.clock_window),
            stray_grace_ns: nanoseconds(config.cs.stray_grace),
            address: Address::from(place.address).octets(),
            mss,
            relay_port: self.relay_port,
            rcv_wscale: config.cluster.window_scale.shift(),
            protocol: config.cluster.protocol.number(),
            roles: place.me.roles.bits(),
            reserved: 0,
        };
        Ok(dataplane.set_settings(&settings)?)
    }

    /// Makes the services map hold exactly these services and their addresses. New ones have no
    /// choices yet.
    pub fn write_services(
        &mut self,
        dataplane: &Dataplane,
        services: &[(SocketAddrV4, &baton_config::Service)],
    ) -> Result<()> {
        let wanted: Vec<ServiceKey> = services
            .iter()
            .flat_map(|(at, _)| [ServiceKey::of(*at), address_key(*at)])
            .collect();
        for (key, old) in dataplane.services()? {
            if !wanted.contains(&key) {
                dataplane.remove_service(&key)?;
                if key.be_port != 0 {
                    self.ids.remove(&key.socket_address());
                    self.choices.remove(&old.id);
                }
            }
        }
        let existing = dataplane.services()?;
        for (at, service) in services {
            dataplane.set_service(&address_key(*at), &Service::default())?;
            if !self.ids.contains_key(at) {
                let id = self.free_id()?;
                self.ids.insert(*at, id);
            }
            let key = ServiceKey::of(*at);
            if !existing.iter().any(|(known, _)| *known == key) {
                self.write_service(dataplane, *at, service, 0)?;
            }
        }
        Ok(())
    }

    /// Data servers that are to have slots. Those of an earlier configuration keep serving what they
    /// have.
    pub fn assign_slots(&mut self, now: Moment, addresses: &[Ipv4Addr]) -> Result<()> {
        Ok(self
            .slots
            .assign(now, addresses.iter().map(|address| Address::from(*address)))?)
    }

    /// Writes the way to a data server, or that there is none now. Its connections keep it then: the
    /// way may come back, and their packets would have nowhere else to go.
    pub fn write_hop(
        &mut self,
        dataplane: &Dataplane,
        place: &Place,
        address: Ipv4Addr,
        hop: Option<Hop>,
    ) -> Result<()> {
        let Some(hop) = hop else {
            self.hops.remove(&address.into());
            return Ok(());
        };
        if let Some(slot) = self.slots.slot(address.into()) {
            dataplane.set_data_server(slot.into(), &data_server(address, &hop, &place.link))?;
            self.hops.insert(address.into(), hop);
        }
        Ok(())
    }

    /// Whether the way to a data server is known.
    pub fn reachable(&self, address: Address) -> bool {
        self.hops.contains_key(&address)
    }

    /// The slot of a data server.
    pub fn slot(&self, address: Address) -> Option<u16> {
        self.slots.slot(address).map(u16::from)
    }

    /// Writes who serves a service now, if that changed. The program reads one bank of choices while
    /// the other is written.
    pub fn write_assignment(
        &mut self,
        dataplane: &Dataplane,
        service: &baton_config::Service,
        usable: &[UsableServer],
    ) -> Result<()> {
        let at = service_at(service)?;
        let Some(&id) = self.ids.get(&at) else {
            bail!("service {} has no id", service.name)
        };
        let servers: Vec<Server<'_>> = usable
            .iter()
            .filter_map(|server| {
                let slot = self
                    .slots
                    .slot(server.address)
                    .filter(|_| self.reachable(server.address))?;
                Some(Server {
                    slot,
                    name: &server.name,
                    weight: server.weight,
                })
            })
            .collect();
        let choices = selection::choices(policy(service.policy), &servers);
        if self.choices.get(&id) == Some(&choices) {
            return Ok(());
        }
        let bank = self.banks.entry(id).or_insert(0);
        *bank = (*bank + 1) % CHOICE_BANKS;
        dataplane.set_choices(first_choice(id, *bank), &choices)?;
        let count = u32::try_from(choices.len()).context("more choices than a bank holds")?;
        self.write_service(dataplane, at, service, count)?;
        self.choices.insert(id, choices);
        Ok(())
    }

    /// Forgets what assignments were written, so that the next ones are written in any case.
    pub fn write_all_again(&mut self) {
        self.choices.clear();
    }

    fn write_service(
        &self,
        dataplane: &Dataplane,
        at: SocketAddrV4,
        service: &baton_config::Service,
        choices: u32,
    ) -> Result<()> {
        let id = self.ids[&at];
        let bank = self.banks.get(&id).copied().unwrap_or(0);
        let entry = Service {
            id,
            policy: byte(policy(service.policy).number()),
            flags: if service.split == Split::Ack {
                byte(SERVICE_SPLIT_AT_ACK)
            } else {
                0
            },
            first_choice: first_choice(id, bank),
            choices,
            hash_seed: 0,
        };
        Ok(dataplane.set_service(&ServiceKey::of(at), &entry)?)
    }

    fn free_id(&self) -> Result<u16> {
        (0..MAX_SERVICES as u16)
            .find(|id| !self.ids.values().any(|used| used == id))
            .with_context(|| format!("no room for more than {MAX_SERVICES} services"))
    }
}

/// A cluster address and port as messages and membership name it.
pub(super) fn endpoint(at: SocketAddrV4) -> Endpoint {
    Endpoint {
        address: (*at.ip()).into(),
        port: at.port(),
    }
}

/// Where a service is, which is IPv4 as the configuration makes sure.
pub fn service_at(service: &baton_config::Service) -> Result<SocketAddrV4> {
    match service.address.ip() {
        std::net::IpAddr::V4(address) => Ok(SocketAddrV4::new(address, service.port.get())),
        std::net::IpAddr::V6(_) => bail!(
            "service {}: its address must be IPv4 in this version",
            service.name
        ),
    }
}

/// Services of a configuration with their places, in the order of the file.
pub fn services_with_places<'a>(
    services: impl Iterator<Item = &'a baton_config::Service>,
) -> Result<Vec<(SocketAddrV4, &'a baton_config::Service)>> {
    services
        .map(|service| Ok((service_at(service)?, service)))
        .collect()
}

/// The IPv4 addresses of all data servers.
pub fn data_server_addresses(config: &Config) -> Vec<Ipv4Addr> {
    config
        .data_servers()
        .filter_map(|node| match node.address.ip() {
            std::net::IpAddr::V4(address) => Some(address),
            std::net::IpAddr::V6(_) => None,
        })
        .collect()
}

fn data_server(address: Ipv4Addr, hop: &Hop, own: &Link) -> DataServer {
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
        flags: byte(DATA_SERVER_PRESENT | flags),
        reserved: [0; 7],
    }
}

fn policy(policy: Policy) -> selection::Policy {
    match policy {
        Policy::RoundRobin => selection::Policy::RoundRobin,
        Policy::Weighted => selection::Policy::Weighted,
        Policy::Client => selection::Policy::Client,
    }
}

fn first_choice(id: u16, bank: u32) -> u32 {
    (u32::from(id) * CHOICE_BANKS + bank) * CHOICES_PER_SERVICE
}

/// Of the cluster address alone.
fn address_key(at: SocketAddrV4) -> ServiceKey {
    ServiceKey::of(SocketAddrV4::new(*at.ip(), 0))
}

fn cookie_words(key: Option<&ClusterKey>) -> [u64; 2] {
    key.map_or([0; 2], |key| key.cookie().words())
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Flags and policies of the ABI are small enumerators that C keeps in a byte.
fn byte(number: u32) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}
