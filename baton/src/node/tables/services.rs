//! Services: what they are to the programs, and who answers their requests.

use std::{
    collections::BTreeSet,
    net::SocketAddrV4,
    num::{NonZeroU8, NonZeroU32},
};

use anyhow::{Context, Result, bail};
use baton_abi::{
    MAX_LARGE, MAX_SERVICES, SERVICE_DOWN, SERVICE_HANDOVER, SERVICE_HOSTS, SERVICE_PATHS,
    SERVICE_SIZES, SERVICE_SPLIT_AT_ACK, Service, ServiceKey,
};
use baton_config::{Handover, NodeName, Overflow, Policy, Split, Weights};
use baton_core::{
    Moment,
    membership::Membership,
    policy::{self, Server},
    sizes::Known,
    slots::Slot,
};
use baton_dataplane::Dataplane;
use baton_wire::{Endpoint, Permille};
use tracing::warn;

use super::{
    Tables,
    pools::PoolId,
    routes::{self, Target},
};

/// A service and where it is.
pub type Placed<'a> = (SocketAddrV4, &'a baton_config::Service);

impl Tables {
    /// Makes the services map hold exactly these services and their addresses. New ones have no
    /// data servers yet.
    pub fn write_services(&mut self, dataplane: &Dataplane, services: &[Placed<'_>]) -> Result<()> {
        let wanted: Vec<ServiceKey> = services
            .iter()
            .flat_map(|(at, _)| [ServiceKey::of(*at), address_key(*at)])
            .collect();
        for (key, _) in dataplane.services()? {
            if !wanted.contains(&key) {
                dataplane.remove_service(&key)?;
                if key.be_port != 0 {
                    self.ids.remove(&key.socket_address());
                }
            }
        }
        for (at, _) in services {
            dataplane.set_service(&address_key(*at), &Service::default())?;
            if !self.ids.contains_key(at) {
                let id = self.free_id()?;
                self.ids.insert(*at, id);
            }
        }
        Ok(())
    }

    /// On a data server it is enough that a service is one.
    pub fn write_names(&self, dataplane: &Dataplane, services: &[Placed<'_>]) -> Result<()> {
        for (at, _) in services {
            let entry = Service {
                id: self.ids[at],
                ..Service::default()
            };
            dataplane.set_service(&ServiceKey::of(*at), &entry)?;
        }
        Ok(())
    }

    /// Makes the maps hold exactly the pools and routes of these services.
    pub fn write_routes(&mut self, dataplane: &Dataplane, services: &[Placed<'_>]) -> Result<()> {
        let mut targets = Vec::new();
        let mut kept = Vec::new();
        for (at, service) in services {
            let pools: Vec<PoolId> = pools(*at, service).map(|pool| pool.id).collect();
            let indices = pools[1..]
                .iter()
                .map(|id| self.pools.index(dataplane, *id))
                .collect::<Result<_>>()?;
            kept.extend(pools);
            targets.push(Target {
                id: self.ids[at],
                service,
                pools: indices,
            });
        }
        routes::write(dataplane, &targets)?;
        self.pools.keep(dataplane, &kept)
    }

    /// Writes who answers a service's requests now, if that changed.
    pub fn write_assignment(
        &mut self,
        dataplane: &Dataplane,
        now: Moment,
        (at, service): Placed<'_>,
        me: &NodeName,
        membership: &Membership,
    ) -> Result<()> {
        let at_endpoint = endpoint(at);
        let usable = membership
            .usable(at_endpoint)
            .map_or(&[][..], |usable| &usable.servers);
        let per_request = service.handover == Handover::EveryRequest;
        let mut down = true;
        let slot = |name: &NodeName| {
            let node = (membership.cluster().nodes()).find(|node| node.name == name.as_str())?;
            self.slots.slot(node.address)
        };
        for pool in pools(at, service) {
            let policy = policy(&pool, me, slot);
            let servers: Vec<Server<'_>> = usable
                .iter()
                .filter(|server| pool.nodes.iter().any(|node| node.as_str() == server.name))
                .filter_map(|server| {
                    let slot = self
                        .slots
                        .slot(server.address)
                        .filter(|_| self.reachable(server.address))?;
                    let weight = match pool.weights.of(&server.name) {
                        Some(weight) => NonZeroU8::new(weight)?,
                        None => server.weight,
                    };
                    Some(Server {
                        slot,
                        name: &server.name,
                        weight,
                        load: membership.load(server.address, at_endpoint),
                    })
                })
                .collect();
            self.pools
                .write(dataplane, now, pool.id, policy, per_request, &servers)?;
            down &= self.pools.is_empty(dataplane, pool.id)?;
        }
        self.write_service(dataplane, at, service, down)
    }

    /// Writes which paths of services are large.
    pub fn write_large(
        &self,
        dataplane: &Dataplane,
        services: &[Placed<'_>],
        known: &Known,
    ) -> Result<()> {
        let mut all = BTreeSet::new();
        for (at, service) in services {
            if service.large.is_some()
                && let Some(id) = self.ids.get(at)
            {
                let paths = known.large(endpoint(*at));
                all.extend(paths.into_iter().map(|path| (*id, path.get())));
            }
        }
        if all.len() > MAX_LARGE as usize {
            warn!(
                "{} large files are more than {MAX_LARGE}: the rest count as small",
                all.len()
            );
        }
        Ok(dataplane.set_large(&all)?)
    }

    /// Whether some pool's choices may be others now though its servers stay, because of their loads.
    pub fn is_due(&self, now: Moment) -> bool {
        self.pools
            .next_timeout()
            .is_some_and(|timeout| timeout <= now)
    }

    /// Forgets what assignments were written, so that the next ones are written in any case.
    pub fn write_all_again(&mut self) {
        self.pools.write_all_again();
    }

    fn write_service(
        &mut self,
        dataplane: &Dataplane,
        at: SocketAddrV4,
        service: &baton_config::Service,
        down: bool,
    ) -> Result<()> {
        let Some(&id) = self.ids.get(&at) else {
            bail!("service {} has no id", service.name)
        };
        let flag = |set: bool, flag: u32| if set { flag } else { 0 };
        let flags = flag(service.split == Split::Ack, SERVICE_SPLIT_AT_ACK)
            | flag(
                service.handover != Handover::Never && service.split == Split::Request,
                SERVICE_HANDOVER,
            )
            | flag(!service.routes.is_empty(), SERVICE_PATHS)
            | flag(routes::name_hosts(service), SERVICE_HOSTS)
            | flag(service.large.is_some(), SERVICE_SIZES)
            | flag(down, SERVICE_DOWN);
        let large = match &service.large {
            Some(large) => {
                let pool = &service.pools[large.pool].name;
                let id = PoolId::new(at, Some(pool.as_str()));
                self.pools.index(dataplane, id)?
            }
            None => 0,
        };
        let entry = Service {
            id,
            pool: self.pools.index(dataplane, PoolId::new(at, None))?,
            flags: flags as u8, // bits that C keeps in a byte
            large,
            ..Service::default()
        };
        Ok(dataplane.set_service(&ServiceKey::of(at), &entry)?)
    }

    fn free_id(&self) -> Result<u16> {
        (0..MAX_SERVICES as u16)
            .find(|id| !self.ids.values().any(|used| used == id))
            .with_context(|| format!("no room for more than {MAX_SERVICES} services"))
    }
}

/// Some data servers of a service.
struct PoolOf<'a> {
    id: PoolId,
    nodes: &'a [NodeName],
    weights: &'a Weights,
    policy: Policy,
    overflow: Option<&'a Overflow>,
}

/// A service's own pool, then those of its routes.
fn pools<'a>(
    at: SocketAddrV4,
    service: &'a baton_config::Service,
) -> impl Iterator<Item = PoolOf<'a>> {
    let own = PoolOf {
        id: PoolId::new(at, None),
        nodes: &service.nodes,
        weights: &service.weights,
        policy: service.policy,
        overflow: service.overflow.as_ref(),
    };
    let named = service.pools.iter().map(move |pool| PoolOf {
        id: PoolId::new(at, Some(pool.name.as_str())),
        nodes: &pool.nodes,
        weights: &pool.weights,
        policy: pool.policy,
        overflow: pool.overflow.as_ref(),
    });
    std::iter::once(own).chain(named)
}

/// A cluster address and port as messages and membership name it.
pub fn endpoint(at: SocketAddrV4) -> Endpoint {
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

/// Of the cluster address alone.
fn address_key(at: SocketAddrV4) -> ServiceKey {
    ServiceKey::of(SocketAddrV4::new(*at.ip(), 0))
}

/// How a pool of this node chooses.
fn policy(
    pool: &PoolOf<'_>,
    me: &NodeName,
    slot: impl Fn(&NodeName) -> Option<Slot>,
) -> policy::Policy {
    match pool.policy {
        Policy::RoundRobin => policy::Policy::RoundRobin,
        Policy::Weighted => policy::Policy::Weighted,
        Policy::Client => policy::Policy::Client,
        Policy::Path => policy::Policy::Path,
        Policy::LeastLoaded => policy::Policy::LeastLoaded,
        Policy::Lard => policy::Policy::Lard,
        Policy::Overflow => overflow(pool, me, slot).unwrap_or(policy::Policy::Weighted),
    }
}

/// `None` while the home has no slot, and so takes nothing.
fn overflow(
    pool: &PoolOf<'_>,
    me: &NodeName,
    slot: impl Fn(&NodeName) -> Option<Slot>,
) -> Option<policy::Policy> {
    let limits = pool.overflow?;
    let here = pool.nodes.iter().find(|node| *node == me);
    // Limits may be the service's, and so not speak of this pool's nodes.
    let named = (limits.home.as_ref()).filter(|home| pool.nodes.contains(home));
    let home = named.or(here).or(pool.nodes.first())?;
    Some(policy::Policy::Overflow(policy::Limits {
        home: slot(home)?,
        cpu: limits.cpu.map(Permille::saturating),
        connections: limits.connections.map(NonZeroU32::get),
    }))
}
