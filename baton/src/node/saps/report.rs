//! What the daemon knows, as a [`Status`].

use std::collections::BTreeMap;

use baton_config::Node;
use baton_forwarding::{ChannelReport, Counters, Family, IoCounters};

use super::{Daemon, Part};
use crate::status::{Channel, Forwarding, Peer, Port, Status};

pub(super) fn status(daemon: &Daemon) -> Status {
    let (forwarding, counters) = match &daemon.part {
        Part::Io(io) => {
            let report = io.report();
            let ports = report.ports.iter().map(|(port, is_ipv6, nodes)| Port {
                port: *port,
                families: if *is_ipv6 { "IPv6" } else { "IPv4" }.into(),
                listeners: *nodes,
            });
            let mut counters = of_connections(&report.counters);
            counters.append(&mut of_channels(&report.channels));
            (shown(daemon, report.nodes, ports.collect()), counters)
        }
        Part::Application(application) => {
            let agent = &application.agent;
            let ports = agent
                .ports()
                .into_iter()
                .map(|(port, family, servers)| Port {
                    port,
                    families: match family {
                        Family::V4 => "IPv4",
                        Family::V6 => "IPv6",
                        Family::Both => "IPv4 and IPv6",
                    }
                    .into(),
                    listeners: servers,
                });
            let report = agent.report();
            let mut all = Counters::default();
            report.iter().for_each(|channel| all.add(&channel.counters));
            let mut counters = of_channels(&all);
            match application.sockets.counters() {
                Ok(mut of_sockets) => counters.append(&mut of_sockets),
                Err(error) => tracing::warn!("{error:#}"),
            }
            (shown(daemon, report, ports.collect()), counters)
        }
    };
    let place = &daemon.place;
    Status {
        node: place.me.name.to_string(),
        roles: names(&place.me),
        interface: place.link.name.clone(),
        xdp: None,
        uptime: daemon.started.elapsed().as_secs(),
        nodes: (place.config.nodes.iter())
            .map(|node| peer(daemon, node, &forwarding))
            .collect(),
        services: Vec::new(),
        flows: None,
        failover: None,
        migration: None,
        leaving: None,
        forwarding: Some(forwarding),
        counters,
    }
}

fn shown(daemon: &Daemon, channels: Vec<ChannelReport>, ports: Vec<Port>) -> Forwarding {
    let config = &daemon.place.config;
    // An application node knows its I/O servers by address.
    let name = |channel: &ChannelReport| match config.node_at(channel.address.ip()) {
        Some(node) => node.name.to_string(),
        None => channel.node.clone(),
    };
    let section = config.forwarding.as_ref();
    Forwarding {
        network: section.map_or("", |section| section.network.name()).into(),
        addresses: (section.iter().flat_map(|section| &section.addresses))
            .map(ToString::to_string)
            .collect(),
        ports,
        channels: (channels.iter())
            .map(|channel| Channel::new(name(channel), channel))
            .collect(),
    }
}

fn peer(daemon: &Daemon, node: &Node, forwarding: &Forwarding) -> Peer {
    let me = &daemon.place.me;
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
        roles: names(node),
        state: state.into(),
        draining: false,
        connections: BTreeMap::new(),
        reachable: None,
        adoptions: None,
        flows: None,
        cpu: None,
        clock_skew_ms: None,
        clock_refused: false,
        lccp_version: None,
        tally: None,
    }
}

fn names(node: &Node) -> Vec<String> {
    node.roles.names().into_iter().map(Into::into).collect()
}

fn of_connections(counters: &IoCounters) -> BTreeMap<String, u64> {
    BTreeMap::from([
        ("io_accepted".into(), counters.accepted),
        ("io_unserved".into(), counters.unserved),
        ("io_connected".into(), counters.connected),
        ("io_not_connected".into(), counters.not_connected),
        ("io_reset_by_client".into(), counters.reset_by_client),
        ("io_reset_by_node".into(), counters.reset_by_node),
        ("io_finished".into(), counters.finished),
    ])
}

fn of_channels(counters: &Counters) -> BTreeMap<String, u64> {
    BTreeMap::from([
        ("forwarding_made".into(), counters.made),
        ("forwarding_refused".into(), counters.refused),
        ("forwarding_resets".into(), counters.resets),
        ("forwarding_lost".into(), counters.lost),
        ("forwarding_bytes_sent".into(), counters.bytes_sent),
        ("forwarding_bytes_received".into(), counters.bytes_received),
        ("forwarding_stalls".into(), counters.stalls),
        ("forwarding_late".into(), counters.late),
        ("forwarding_stale".into(), counters.stale),
        ("forwarding_unknown".into(), counters.unknown),
        ("forwarding_beyond_credit".into(), counters.beyond_credit),
        ("forwarding_faults".into(), counters.faults),
    ])
}
