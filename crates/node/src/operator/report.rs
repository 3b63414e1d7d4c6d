//! The report of what the daemon knows, as a [`Status`].

use std::{
    collections::{BTreeMap, HashMap},
    net::{Ipv4Addr, SocketAddr, SocketAddrV4},
};

use anyhow::Result;
use baton_abi::COUNTER_LCCP_SOCKET_FULL;
use baton_config::{Node, Roles};
use baton_core::membership::{Basis, Presence};
use baton_dataplane::{StaleSender, Tallied, XdpMode, counter_name};
use baton_net::LccpSocket;
use baton_wire::{Address, Health};

use crate::status::{Certificate, Flows, Peer, Pool, Route, Service, Status, Tally};
use crate::{
    daemon::Daemon,
    data_server::{DataServer, agent},
    local_node::{FRONT, LocalNode},
    places::{endpoint, service_at},
    status::tallies,
};

/// The present status of this node.
pub fn status(daemon: &Daemon) -> Result<Status> {
    let local = &daemon.local;
    let is_cs = local.me.roles.is_cs();
    let migrations = daemon.migrations.state();
    let mut counters: BTreeMap<String, u64> = daemon.dataplane.counters()?.into_iter().collect();
    let rejected = daemon
        .messenger
        .rejected
        .iter()
        .map(|(counter, n)| (*counter, *n));
    for (counter, more) in rejected
        .chain(migrations.rejected.clone())
        .chain(daemon.messenger.retransmitted())
    {
        *counters.entry(counter_name(counter)).or_default() += more;
    }
    let protocol = local.config.cluster.protocol.number();
    let lost = LccpSocket::lost_at(local.address, protocol)?;
    *counters
        .entry(counter_name(COUNTER_LCCP_SOCKET_FULL))
        .or_default() += lost;
    let of_ds = daemon.data_server.as_ref();
    let agent = of_ds.and_then(|server| server.agent.as_ref());
    let at_doors = agent.map(agent::Running::asked).unwrap_or_default();
    for (counter, value) in [
        (baton_abi::COUNTER_DS_ASKED, at_doors.asked),
        (baton_abi::COUNTER_DS_ASK_LATE, at_doors.late),
        (baton_abi::COUNTER_DS_ASK_DEAD, at_doors.dead),
        (baton_abi::COUNTER_DS_ASK_LIE, at_doors.lie),
    ] {
        *counters.entry(counter_name(counter)).or_default() += value;
    }
    let containers = of_ds.map(|server| &server.containers);
    let of_containers = containers
        .filter(|one| !one.is_empty())
        .map(|one| &one.counters);
    let relay = of_ds.and_then(|server| server.relay.as_ref());
    let relays = relay.map(|relay| &relay.counters);
    for relay in relays.into_iter().chain(of_containers) {
        for (name, value) in relay.all() {
            *counters.entry(name.into()).or_default() += value;
        }
    }
    let reader = agent.map(|agent| agent.counters.all()).unwrap_or_default();
    for (name, value) in reader.into_iter().chain(daemon.resume.counts.get()) {
        counters.insert(name.into(), value);
    }
    for (name, value) in of_ds
        .map(|server| server.tls_agent.counts())
        .unwrap_or_default()
    {
        counters.insert(name, value);
    }
    let stale = daemon.dataplane.stale_senders()?;
    Ok(Status {
        node: local.me.name.to_string(),
        roles: role_names(local.me.roles),
        interface: local.link.name.clone(),
        interfaces: local.interface_names(),
        interface_gone: None,
        interfaces_gone: Vec::new(),
        xdp: daemon.dataplane.xdp_mode().map(|mode| {
            match mode {
                XdpMode::Native => "native",
                XdpMode::Generic => "generic",
            }
            .to_owned()
        }),
        uptime: daemon.clock.started().elapsed().as_secs(),
        nodes: local
            .config
            .nodes
            .iter()
            .map(|node| peer(daemon, node, &stale))
            .collect::<Result<_>>()?,
        services: local
            .config
            .services
            .iter()
            .map(|service| self::service(daemon, service))
            .collect::<Result<_>>()?,
        flows: (daemon.connection_server.as_ref())
            .zip(daemon.dataplane.as_connection_server())
            .map(|(server, maps)| Flows {
                live: server.swept.live,
                capacity: maps.tcb_capacity(),
                expired: server.expired,
            }),
        failover: daemon.failover_status(),
        forwarding: None,
        migration: is_cs.then(|| migrations.shown()),
        certificates: of_ds.map(certificates).unwrap_or_default(),
        counters,
    })
}

/// The status of a node that has waited for the interfaces `gone` for so many seconds. It says nothing else about the
/// node, except for how many seconds it has been up.
pub fn without_interface(local: &LocalNode, gone: &[String], seconds: u64, uptime: u64) -> Status {
    Status {
        node: local.me.name.to_string(),
        roles: role_names(local.me.roles),
        interface: local.link.name.clone(),
        interfaces: local.interface_names(),
        interface_gone: Some(seconds),
        interfaces_gone: gone.to_vec(),
        uptime,
        ..Status::default()
    }
}

/// The certificates that the agent of this data server shows.
fn certificates(server: &DataServer) -> Vec<Certificate> {
    let shown = server.tls_agent.certificates().into_iter();
    let shown = shown.map(|one| Certificate {
        service: one.service,
        file: one.file,
        name: one.name,
        not_after: one.not_after,
    });
    shown.collect()
}

fn peer(daemon: &Daemon, node: &Node, stale: &HashMap<Ipv4Addr, StaleSender>) -> Result<Peer> {
    let address = Address::from(node.address.ip());
    let presence = daemon.peers.membership.presence(address);
    let slot = daemon
        .tables
        .slot(address)
        .filter(|_| daemon.local.me.roles.is_cs() || daemon.local.me.roles.is_switch());
    let here = slot.zip(daemon.dataplane.as_connection_server());
    let tally = here
        .map(|(slot, server)| server.routing().tally(Tallied::DataServer(slot)))
        .transpose()?;
    let at_doors = daemon.at_doors_of(address)?;
    let cpu = match presence {
        Some(Presence::Heard { cpu, .. }) => Some(cpu.get()),
        _ => None,
    };
    let skew = (node.address.ipv4()).and_then(|address| {
        daemon
            .peers
            .clocks
            .of(daemon.now(), address, stale.get(&address))
    });
    Ok(Peer {
        name: node.name.to_string(),
        address: node.address.ip().to_string(),
        roles: role_names(node.roles),
        draining: daemon.peers.membership.is_draining(address),
        connections: connections(daemon, address)?,
        state: if daemon.peers.liveness.is_dead(address) {
            "dead"
        } else {
            state(node.name == daemon.local.me.name, presence)
        }
        .to_owned(),
        reachable: slot.map(|_| daemon.tables.reachable(address)),
        adoptions: tally.as_ref().map(|tally| tally.connections),
        flows: here.map(|(slot, server)| server.flows(slot)).transpose()?,
        cpu,
        clock_skew_ms: skew.map(|skew| skew.ms),
        clock_refused: skew.is_some_and(|skew| skew.refused),
        lccp_version: (node.address.ipv4())
            .and_then(|address| daemon.peers.versions.of(daemon.now(), address)),
        tally: tally.map(|tally| tallies::shown(&tally, at_doors)),
    })
}

/// The number of open connections that a node reports, by the name of the service.
fn connections(daemon: &Daemon, node: Address) -> Result<BTreeMap<String, u32>> {
    let mut open = BTreeMap::new();
    for service in &daemon.local.config.services {
        let at = endpoint(service_at(service)?);
        if let Some(report) = daemon.peers.membership.report(node, at) {
            open.insert(service.name.to_string(), report.connections);
        }
    }
    Ok(open)
}

fn state(is_this: bool, presence: Option<Presence>) -> &'static str {
    match presence {
        _ if is_this => "this node",
        Some(Presence::Heard { .. }) => "alive",
        Some(Presence::Awaited { .. }) => "never heard of",
        Some(Presence::Silent) => "silent",
        None => "not watched here",
    }
}

fn service(daemon: &Daemon, service: &baton_config::Service) -> Result<Service> {
    let at = service_at(service)?;
    let local = &daemon.local;
    let is_switch = local.me.roles.is_switch();
    // A switch knows only to which connection servers a service's packets go.
    let (known_as, members): (_, Vec<&Node>) = if is_switch {
        (FRONT, local.config.connection_servers().collect())
    } else {
        let members = local.config.data_servers_of(service).collect();
        (endpoint(at), members)
    };
    let usable = daemon.peers.membership.usable(known_as);
    let is_usable = |address: Address| {
        usable.is_some_and(|usable| {
            usable
                .servers
                .iter()
                .any(|server| server.address == address)
        })
    };
    let mut taking = Vec::new();
    let mut out = Vec::new();
    for node in members {
        let address = Address::from(node.address.ip());
        let roles = local.me.roles;
        let unreachable = if roles.is_switch() {
            !daemon.tables.is_next_door(address)
        } else {
            roles.is_cs() && !daemon.tables.reachable(address)
        };
        if is_usable(address) && !unreachable {
            taking.push(node.name.to_string());
        } else {
            let why = why_out(daemon, node, address, known_as, unreachable);
            out.push((node.name.to_string(), why.to_owned()));
        }
    }
    if usable.is_some_and(|usable| usable.basis == Basis::Unheard) {
        out.push((
            "all".into(),
            "silent, but used nevertheless: only their daemons may be dead, not their servers"
                .into(),
        ));
    }
    let own_health = (daemon.data_server.as_ref()).map(|server| match server.checks.health(at) {
        Health::Passing => "passing",
        Health::Failing => "failing",
        Health::Unknown => "not known yet",
    });
    let rest = daemon.tables.tallied_pool(at, None);
    Ok(Service {
        name: service.name.to_string(),
        address: SocketAddr::new(service.address.ip(), service.port.get()).to_string(),
        policy: service.policy.to_string(),
        pools: (service.pools.iter().enumerate())
            .map(|(index, pool)| {
                let tallied = daemon.tables.tallied_pool(at, Some(pool.name.as_str()));
                let at_doors = daemon.at_doors_for_pool(at, Some(pool.name.as_str()), tallied)?;
                let tally = tallies::of(&daemon.dataplane, tallied, at_doors)?;
                Ok(self::pool(service, index, pool, &taking, tally))
            })
            .collect::<Result<_>>()?,
        routes: (service.routes.iter())
            .map(|route| self::route(daemon, service, at, route))
            .collect::<Result<_>>()?,
        rest: tallies::of(
            &daemon.dataplane,
            rest,
            daemon.at_doors_for_pool(at, None, rest)?,
        )?,
        taking,
        out,
        local_health: own_health
            .filter(|_| service.data_servers().contains(&&daemon.local.me.name))
            .map(str::to_owned),
    })
}

/// The status of the pool with this index. `taking` are the data servers of the service that take requests.
fn pool(
    service: &baton_config::Service,
    index: usize,
    pool: &baton_config::Pool,
    taking: &[String],
    tally: Option<Tally>,
) -> Pool {
    let routes = service.routes.iter().filter(|route| route.pool == index);
    Pool {
        name: pool.name.to_string(),
        policy: pool.policy.to_string(),
        routes: routes.map(ToString::to_string).collect(),
        taking: (pool.nodes.iter().map(ToString::to_string))
            .filter(|node| taking.contains(node))
            .collect(),
        tally,
    }
}

fn route(
    daemon: &Daemon,
    service: &baton_config::Service,
    at: SocketAddrV4,
    route: &baton_config::Route,
) -> Result<Route> {
    let tallied = daemon.tables.tallied_route(at, route);
    let at_doors = daemon.at_doors_by_route(at, route, tallied)?;
    Ok(Route {
        route: route.to_string(),
        pool: service.pools[route.pool].name.to_string(),
        tally: tallies::of(&daemon.dataplane, tallied, at_doors)?,
    })
}

fn why_out(
    daemon: &Daemon,
    node: &Node,
    address: Address,
    at: baton_wire::Endpoint,
    unreachable: bool,
) -> &'static str {
    let failing = daemon
        .peers
        .membership
        .report(address, at)
        .is_some_and(|report| report.health == Health::Failing);
    match daemon.peers.membership.presence(address) {
        _ if daemon.peers.liveness.is_dead(address) => "dead",
        _ if node.weight == 0 && !daemon.local.me.roles.is_switch() => "weight 0",
        _ if failing && daemon.local.me.roles.is_switch() => "has no data server",
        _ if daemon.peers.membership.is_draining(address) => "drains",
        _ if failing => "its own check fails",
        _ if unreachable && daemon.local.me.roles.is_switch() => "cannot be reached on this LAN",
        _ if unreachable => "cannot be reached",
        _ => "silent",
    }
}

pub fn role_names(roles: Roles) -> Vec<String> {
    roles.names().iter().map(|name| (*name).into()).collect()
}
