//! Services: their entries in the maps, and which data servers answer their requests.

use std::{
    collections::{BTreeSet, HashMap},
    net::{Ipv4Addr, SocketAddrV4},
};

use anyhow::{Context, Result, bail};
use baton_abi::{
    MAX_LARGE, MAX_SERVICES, SERVICE_ASKS, SERVICE_DIRECT, SERVICE_DOWN, SERVICE_HOSTS,
    SERVICE_OWNER, SERVICE_PATHS, SERVICE_REFUSES, SERVICE_RESUME, SERVICE_RESUME_REST,
    SERVICE_SIZES, SERVICE_SPLIT_AT_ACK, SERVICE_STAYS, SERVICE_TARGETS, SERVICE_TLS, Service,
    ServiceKey,
};
use baton_config::{Handover, NodeName, Policy, Split, UnknownName};
use baton_core::{
    Moment,
    membership::{Cluster, Membership},
    policy::Server,
    sizes::Known,
    slots::Slot,
};
use baton_dataplane::Dataplane;
use baton_wire::Address;
use tracing::warn;

use super::{
    Tables,
    policies::{policy, pools},
    pools::PoolId,
    route_numbers::RouteId,
    routes::{self, Target},
    routing_of,
};
use crate::{
    data_server::current_rules::{CurrentRules, RuleSet},
    local_node::LocalNode,
    peers::keys::key_ring,
    places::{Placed, endpoint},
};

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
                    self.down.remove(&key.socket_address());
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

    /// Writes entries that say only that a service exists, and whether its responses can be resumed. This is enough
    /// on a switch, and on a data server for services whose owners do not route.
    pub fn write_names(&self, dataplane: &Dataplane, services: &[Placed<'_>]) -> Result<()> {
        for (at, service) in services {
            let flag = |set: bool, flag: u32| if set { flag } else { 0 };
            let flags = flag(service.resumes(), SERVICE_RESUME);
            let entry = Service {
                id: self.ids[at],
                flags: flags as u16, // bits that C keeps in 16
                ..Service::default()
            };
            dataplane.set_service(&ServiceKey::of(*at), &entry)?;
        }
        Ok(())
    }

    /// Makes the maps hold exactly the pools and routes of these services, and makes rules of the same routes, with
    /// their conditions, the current ones.
    pub fn write_routes(
        &mut self,
        dataplane: &Dataplane,
        services: &[Placed<'_>],
        current_rules: &CurrentRules,
        local: &LocalNode,
    ) -> Result<()> {
        let mut dispatchers = HashMap::new();
        let mut targets = Vec::new();
        let mut kept = Vec::new();
        let ids = |(at, service): &Placed<'_>| -> Vec<RouteId> {
            let routes = service.routes.iter();
            routes.map(|route| RouteId::new(*at, route)).collect()
        };
        let wanted: Vec<RouteId> = services.iter().flat_map(ids).collect();
        self.route_numbers.assign(dataplane, &wanted)?;
        for (at, service) in services {
            let pools: Vec<PoolId> = pools(*at, service).map(|pool| pool.id).collect();
            let indices = pools[1..]
                .iter()
                .map(|id| self.pools.index(dataplane, *id))
                .collect::<Result<_>>()?;
            if let Some(dispatcher) = dispatcher_of(service, local) {
                dispatchers.insert(self.ids[at], dispatcher);
            }
            kept.extend(pools);
            targets.push(Target {
                id: self.ids[at],
                service,
                pools: indices,
                numbers: ids(&(*at, service))
                    .into_iter()
                    .map(|id| {
                        self.route_numbers
                            .number(id)
                            .context("a route has no number")
                    })
                    .collect::<Result<_>>()?,
            });
        }
        // The rules must know a service before somebody asks about it; to know more does no harm.
        current_rules.replace(RuleSet {
            rules: routes::rules(&targets),
            leads: routes::leads(&targets),
            dispatchers,
            servers: self.slots_of(local),
            keys: key_ring(&local.config, &local.me),
            hash_key: local.config.cluster.hash_key(),
            clock_window: local.config.cluster.clock_window,
            patience: local.config.cs.dispatcher_patience,
        });
        routes::write(dataplane, &targets)?;
        self.pools.keep(dataplane, &kept)
    }

    /// Writes which data servers answer a service's requests, if that changed.
    pub fn write_assignment(
        &mut self,
        dataplane: &Dataplane,
        now: Moment,
        (at, service): Placed<'_>,
        me: &NodeName,
        membership: &Membership,
    ) -> Result<()> {
        let at_endpoint = endpoint(at);
        let usable = membership.usable(at_endpoint);
        let per_request = service.handover == Handover::EveryRequest;
        let mut down = true;
        let slot = |name: &NodeName| {
            let node = (membership.cluster().nodes()).find(|node| node.name == name.as_str())?;
            self.slots.slot(node.address)
        };
        // If a pool has no usable server, the agent of any data server of the service can tell clients so. Services
        // without an agent have no such nodes.
        let others: Vec<u16> = (usable.into_iter())
            .filter(|_| service.owner_routes())
            .flat_map(|usable| usable.among(|_| true))
            .filter_map(|server| self.reachable_slot(server.address).map(u16::from))
            .collect();
        for pool in pools(at, service) {
            let policy = policy(&pool, me, slot);
            let servers: Vec<Server<'_>> = (usable.into_iter())
                .flat_map(|usable| usable.among(|server| pool.has(server)))
                .filter_map(|server| {
                    let slot = self.reachable_slot(server.address)?;
                    let weight = pool.weight(&server.name, server.weight)?;
                    Some(Server {
                        slot,
                        name: &server.name,
                        weight,
                        load: membership.load(server.address, at_endpoint),
                    })
                })
                .collect();
            self.pools.write(
                dataplane,
                now,
                pool.id,
                (policy, per_request),
                &servers,
                &others,
            )?;
            down &= self.pools.is_empty(dataplane, pool.id)?;
        }
        self.down.insert(at, down);
        self.write_service(dataplane, at, service, down)
    }

    /// Writes which paths of services are large.
    pub fn write_large(
        &self,
        dataplane: &Dataplane,
        services: &[Placed<'_>],
        known: &Known,
        cluster: &Cluster,
    ) -> Result<()> {
        let mut all = BTreeSet::new();
        for (at, service) in services {
            if service.large.is_some()
                && let Some(id) = self.ids.get(at)
            {
                let paths = known.large(endpoint(*at), |from, at| cluster.serves(from, at));
                all.extend(paths.into_iter().map(|path| (*id, path.get())));
            }
        }
        if all.len() > MAX_LARGE as usize {
            warn!(
                "{} large files are more than {MAX_LARGE}: the rest count as small",
                all.len()
            );
        }
        Ok(routing_of(dataplane)?.set_large(&all)?)
    }

    /// Whether this connection server has a data server for some of its services.
    pub fn can_serve(&self) -> bool {
        self.down.values().any(|down| !down)
    }

    /// Whether assignments may have changed although the servers are the same, because of their loads or because time
    /// has passed.
    pub fn is_due(&self, now: Moment) -> bool {
        [self.pools.next_timeout(), self.maglev_slots.next_timeout()]
            .into_iter()
            .flatten()
            .any(|timeout| timeout <= now)
    }

    /// Forgets which assignments were written, so that the next ones are written in any case.
    pub fn write_all_again(&mut self) {
        self.pools.write_all_again();
    }

    /// The slot of a data server that has one and can be reached.
    fn reachable_slot(&self, server: Address) -> Option<Slot> {
        (self.slots.slot(server)).filter(|_| self.reachable(server))
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
        let has_paths = !service.is_tls() && !service.routes.is_empty();
        let flags = flag(service.split == Split::Ack, SERVICE_SPLIT_AT_ACK)
            | flag(service.owner_routes(), SERVICE_OWNER)
            | flag(
                service.owner_routes() && service.connections_stay(),
                SERVICE_STAYS,
            )
            | flag(service.is_tls(), SERVICE_TLS)
            | flag(service.unknown_name == UnknownName::Refuse, SERVICE_REFUSES)
            | flag(has_paths, SERVICE_PATHS)
            | flag(has_paths && routes::name_hosts(service), SERVICE_HOSTS)
            | flag(has_paths || reads_targets(service), SERVICE_TARGETS)
            | flag(service.dispatcher.is_some(), SERVICE_ASKS)
            | flag(service.large.is_some(), SERVICE_SIZES)
            | flag(service.resumes(), SERVICE_RESUME)
            | flag(service.resume, SERVICE_RESUME_REST)
            | flag(service.direct, SERVICE_DIRECT)
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
            flags: flags as u16, // bits that C keeps in 16
            large,
        };
        Ok(dataplane.set_service(&ServiceKey::of(at), &entry)?)
    }

    fn free_id(&self) -> Result<u16> {
        (0..MAX_SERVICES as u16)
            .find(|id| !self.ids.values().any(|used| used == id))
            .with_context(|| format!("no room for more than {MAX_SERVICES} services"))
    }
}

/// Whether the path of a request decides to which pool it goes, or which data server of the pool answers it.
fn reads_targets(service: &baton_config::Service) -> bool {
    let by_path = |policy: Policy| matches!(policy, Policy::Path | Policy::Lard);
    let of_pools = service.pools.iter().map(|pool| pool.policy);
    service.large.is_some() || std::iter::once(service.policy).chain(of_pools).any(by_path)
}

/// The address of the node that is the dispatcher of a service, if the service has one.
fn dispatcher_of(service: &baton_config::Service, local: &LocalNode) -> Option<Ipv4Addr> {
    let name = service.dispatcher.as_ref()?;
    local.config.node_named(name.as_str())?.address.ipv4()
}

/// The key of the entry for the cluster address alone, which has port 0.
fn address_key(at: SocketAddrV4) -> ServiceKey {
    ServiceKey::of(SocketAddrV4::new(*at.ip(), 0))
}
