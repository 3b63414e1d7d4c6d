//! What the daemon knows, as a [`Status`].

use std::collections::BTreeMap;

use baton_config::Node;
use baton_saps::{ChannelReport, Family, TakenPort};

use super::{Daemon, Part};
use crate::operator::report::role_names;
use crate::status::{Channel, Forwarding, MissedPort, Peer, Port, Status};

pub(super) fn status(daemon: &Daemon) -> Status {
    let (forwarding, counters) = match &daemon.part {
        Part::Io(io) => {
            let report = io.report();
            let ports = report.ports.iter().map(|(port, is_ipv6, nodes)| Port {
                port: *port,
                families: if *is_ipv6 { "IPv6" } else { "IPv4" }.into(),
                listeners: *nodes,
            });
            let counters = named(report.counters.all()).chain(named(report.channels.all()));
            let policy = (daemon.local.config.forwarding.as_ref())
                .map_or("", |forwarding| forwarding.policy.as_str());
            let forwarding = Forwarding {
                policy: policy.into(),
                taken: taken(&report.taken),
                ..shown(daemon, report.nodes, ports.collect())
            };
            (forwarding, counters.collect())
        }
        Part::Application(application) => {
            let agent = &application.agent;
            let ports = agent
                .ports()
                .into_iter()
                .map(|(port, family, is_listening)| Port {
                    port,
                    families: families(family),
                    listeners: usize::from(is_listening),
                });
            let report = agent.report();
            let mut counters: BTreeMap<_, _> = named(report.counters.all()).collect();
            counters.insert("forwarding_not_reached".into(), agent.failed());
            match application.sockets.counters() {
                Ok(mut of_sockets) => counters.append(&mut of_sockets),
                Err(error) => tracing::warn!("{error:#}"),
            }
            let refused = application.sockets.refused();
            let refused = refused.into_iter().map(|refused| MissedPort {
                port: refused.port,
                families: families(refused.family),
                reason: format!("the I/O server says: {}", refused.reason),
            });
            let forwarding = Forwarding {
                refused: refused.collect(),
                taken: taken(&agent.taken().borrow()),
                ..shown(daemon, vec![report], ports.collect())
            };
            (forwarding, counters)
        }
    };
    let local = &daemon.local;
    Status {
        node: local.me.name.to_string(),
        roles: role_names(local.me.roles),
        interface: local.link.name.clone(),
        interfaces: local.interface_names(),
        uptime: daemon.started.elapsed().as_secs(),
        nodes: (local.config.nodes.iter())
            .map(|node| peer(daemon, node, &forwarding))
            .collect(),
        forwarding: Some(forwarding),
        counters,
        ..Status::default()
    }
}

fn families(of: Family) -> String {
    match of {
        Family::V4 => "IPv4",
        Family::V6 => "IPv6",
        Family::Both => "IPv4 and IPv6",
    }
    .into()
}

fn taken(ports: &[TakenPort]) -> Vec<MissedPort> {
    let missed = ports.iter().map(|taken| MissedPort {
        port: taken.port,
        families: families(taken.families),
        reason: "another program on the I/O server's host uses it".into(),
    });
    missed.collect()
}

fn shown(daemon: &Daemon, channels: Vec<ChannelReport>, ports: Vec<Port>) -> Forwarding {
    let config = &daemon.local.config;
    // An application node knows its I/O server by address.
    let name = |channel: &ChannelReport| match config.node_at(channel.address.ip()) {
        Some(node) => node.name.to_string(),
        None => channel.node.clone(),
    };
    let section = config.forwarding.as_ref();
    Forwarding {
        network: section
            .map_or("", |section| section.network.as_str())
            .into(),
        addresses: (section.iter().flat_map(|section| &section.addresses))
            .map(ToString::to_string)
            .collect(),
        ports,
        policy: String::new(),
        refused: Vec::new(),
        taken: Vec::new(),
        channels: (channels.iter())
            .map(|channel| Channel::new(name(channel), channel))
            .collect(),
    }
}

fn peer(daemon: &Daemon, node: &Node, forwarding: &Forwarding) -> Peer {
    let me = &daemon.local.me;
    let is_other_end =
        node.roles.is_io() != me.roles.is_io() && (node.roles.is_io() || node.roles.is_app());
    let is_up = forwarding.is_up(node.name.as_str());
    let state = match () {
        () if node.name == me.name => "this node",
        () if is_up => "alive",
        () if is_other_end => "silent",
        () => "not watched here",
    };
    Peer {
        name: node.name.to_string(),
        address: node.address.ip().to_string(),
        roles: role_names(node.roles),
        state: state.into(),
        ..Peer::default()
    }
}

fn named(counters: Vec<(&'static str, u64)>) -> impl Iterator<Item = (String, u64)> {
    counters
        .into_iter()
        .map(|(name, value)| (name.into(), value))
}
