//! The daemon's knowledge as a [`Status`].

use std::net::IpAddr;

use anyhow::Result;
use baton_config::{Node, Roles};
use baton_core::membership::{Basis, Presence};
use baton_dataplane::{XdpMode, counter_name};
use baton_wire::{Address, Health};

use super::{
    daemon::Daemon,
    heartbeat::clock_now,
    tables::{self, endpoint},
};
use crate::status::{Flows, Peer, Pool, Service, Status};

/// Everything about a node, as of now.
pub fn status(daemon: &Daemon) -> Result<Status> {
    let place = &daemon.place;
    let is_cs = place.me.roles.is_cs();
    let mut counters: std::collections::BTreeMap<String, u64> =
        daemon.dataplane.counters()?.into_iter().collect();
    for (counter, dropped) in &daemon.rejected {
        *counters.entry(counter_name(*counter)).or_default() += dropped;
    }
    let asked = daemon.judge.counts();
    for (counter, value) in [
        (baton_abi::COUNTER_CS_ASKED, asked.asked),
        (baton_abi::COUNTER_CS_ASK_LATE, asked.late),
        (baton_abi::COUNTER_CS_ASK_DEAD, asked.dead),
        (baton_abi::COUNTER_CS_ASK_LIE, asked.lie),
    ] {
        *counters.entry(counter_name(counter)).or_default() += value;
    }
    if let Some(relay) = &daemon.relay {
        use std::sync::atomic::Ordering::Relaxed;
        counters.insert(
            "relay_accepted".into(),
            relay.counters.accepted.load(Relaxed),
        );
        counters.insert("relay_failed".into(), relay.counters.failed.load(Relaxed));
        counters.insert("relay_foreign".into(), relay.counters.foreign.load(Relaxed));
        counters.insert(
            "relay_finished".into(),
            relay.counters.finished.load(Relaxed),
        );
    }
    Ok(Status {
        node: place.me.name.to_string(),
        roles: role_names(place.me.roles),
        interface: place.link.name.clone(),
        xdp: daemon.dataplane.xdp_mode().map(|mode| {
            match mode {
                XdpMode::Native => "native",
                XdpMode::Generic => "generic",
            }
            .to_owned()
        }),
        uptime: daemon.uptime(),
        nodes: place
            .config
            .nodes
            .iter()
            .map(|node| peer(daemon, node))
            .collect::<Result<_>>()?,
        services: place
            .config
            .services
            .iter()
            .map(|service| self::service(daemon, service))
            .collect::<Result<_>>()?,
        flows: is_cs.then(|| Flows {
            live: daemon.swept.live,
            capacity: daemon.dataplane.tcb_capacity(),
            expired: daemon.expired,
        }),
        counters,
    })
}

fn peer(daemon: &Daemon, node: &Node) -> Result<Peer> {
    let address = Address::from(node.address.ip());
    let presence = daemon.membership.presence(address);
    let slot = daemon
        .tables
        .slot(address)
        .filter(|_| daemon.place.me.roles.is_cs());
    let (cpu, clock_skew_ms) = match presence {
        Some(Presence::Heard { cpu, sent, .. }) => (Some(cpu.get()), Some(skew_ms(sent))),
        _ => (None, None),
    };
    Ok(Peer {
        name: node.name.to_string(),
        address: node.address.ip().to_string(),
        roles: role_names(node.roles),
        state: state(node.name == daemon.place.me.name, presence).to_owned(),
        reachable: slot.map(|_| daemon.tables.reachable(address)),
        adoptions: slot
            .map(|slot| daemon.dataplane.adoptions(slot))
            .transpose()?,
        flows: slot.map(|slot| daemon.dataplane.flows(slot)).transpose()?,
        cpu,
        clock_skew_ms,
    })
}

fn state(is_this: bool, presence: Option<Presence>) -> &'static str {
    match presence {
        _ if is_this => "this node",
        Some(Presence::Heard { .. }) => "alive",
        Some(Presence::Awaited { .. }) => "never heard of",
        Some(Presence::Silent) => "silent",
        None => "not a data server",
    }
}

fn service(daemon: &Daemon, service: &baton_config::Service) -> Result<Service> {
    let at = tables::service_at(service)?;
    let usable = daemon.membership.usable(endpoint(at));
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
    for name in service.data_servers() {
        let Some(node) = daemon.place.config.node_named(name.as_str()) else {
            continue;
        };
        let address = Address::from(node.address.ip());
        let unreachable = daemon.place.me.roles.is_cs() && !daemon.tables.reachable(address);
        if is_usable(address) && !unreachable {
            taking.push(name.to_string());
        } else {
            out.push((
                name.to_string(),
                why_out(daemon, node, address, endpoint(at), unreachable).to_owned(),
            ));
        }
    }
    if usable.is_some_and(|usable| usable.basis == Basis::Unheard) {
        out.push((
            "all".into(),
            "silent, and used nevertheless: a dead daemon is not a dead server".into(),
        ));
    }
    let own_health = daemon
        .place
        .me
        .roles
        .is_ds()
        .then(|| match daemon.checks.health(at) {
            Health::Passing => "passing",
            Health::Failing => "failing",
            Health::Unknown => "not known yet",
        });
    Ok(Service {
        name: service.name.to_string(),
        address: match service.address.ip() {
            IpAddr::V4(address) => format!("{address}:{}", service.port),
            IpAddr::V6(address) => format!("[{address}]:{}", service.port),
        },
        policy: service.policy.to_string(),
        pools: (service.pools.iter().enumerate())
            .map(|(index, pool)| self::pool(service, index, pool, &taking))
            .collect(),
        taking,
        out,
        local_health: own_health
            .filter(|_| service.data_servers().contains(&&daemon.place.me.name))
            .map(str::to_owned),
    })
}

/// `taking` are the data servers of the service that take requests.
fn pool(
    service: &baton_config::Service,
    index: usize,
    pool: &baton_config::Pool,
    taking: &[String],
) -> Pool {
    let routes = service.routes.iter().filter(|route| route.pool == index);
    Pool {
        name: pool.name.to_string(),
        policy: pool.policy.to_string(),
        routes: routes
            .map(|route| format!("{}{}", route.host, route.path))
            .collect(),
        taking: (pool.nodes.iter().map(ToString::to_string))
            .filter(|node| taking.contains(node))
            .collect(),
    }
}

fn why_out(
    daemon: &Daemon,
    node: &Node,
    address: Address,
    at: baton_wire::Endpoint,
    unreachable: bool,
) -> &'static str {
    let failing = daemon
        .membership
        .report(address, at)
        .is_some_and(|report| report.health == Health::Failing);
    match daemon.membership.presence(address) {
        _ if node.weight == 0 => "weight 0",
        _ if failing => "its own check fails",
        _ if unreachable => "cannot be reached",
        _ => "silent",
    }
}

fn role_names(roles: Roles) -> Vec<String> {
    let named = [
        (roles.is_cs(), "cs"),
        (roles.is_ds(), "ds"),
        (roles.is_dispatcher(), "dispatcher"),
    ];
    named
        .iter()
        .filter(|(has, _)| *has)
        .map(|(_, name)| (*name).to_owned())
        .collect()
}

/// Ours minus theirs when they spoke last, so at most one heartbeat too much.
fn skew_ms(sent: baton_wire::Clock) -> i64 {
    let difference = i128::from(clock_now().as_nanos()) - i128::from(sent.as_nanos());
    i64::try_from(difference / 1_000_000).unwrap_or(i64::MAX)
}
