//! The lab file: which hosts there are, how they are linked, and what runs on them.
//!
//! One LAN joins all hosts that name no LAN. A host's `address` and `link` are those of its first
//! interface. A router, or a node on several networks, has further interfaces, each a `port`.

mod check;
mod names;
mod thing;
mod values;

use std::net::IpAddr;

use serde::Deserialize;

pub use names::{BRIDGE, HostName, LabName, LanName, ThingName};
pub use thing::{Program, Server, ServerKind, Thing};
pub use values::{Cpu, HostAddress, Loss, Mtu, Port, Rate};

/// A checked lab file: names and addresses are unique, and everything fits together.
#[derive(Clone, Debug)]
pub struct Lab {
    pub(crate) name: LabName,
    pub(crate) hosts: Vec<Host>,
    pub(crate) config: Option<Config>,
    pub(crate) source: String,
}

/// A host: a network namespace with an interface `eth0` on one of the lab's LANs, and perhaps further interfaces.
#[derive(Clone, Debug)]
pub struct Host {
    /// The name, unique in the lab.
    pub name: HostName,
    /// The addresses of its first interface, at least one.
    pub addresses: Vec<HostAddress>,
    /// The node's own address in the cluster, one of the addresses of all its interfaces. `None`: the first address.
    pub node_address: Option<IpAddr>,
    /// The LAN of its first interface. `None`: the LAN of all that name no LAN.
    pub lan: Option<LanName>,
    /// The address of the router to all other networks.
    pub gateway: Option<IpAddr>,
    /// The further interfaces, `eth1` and so on. A host that has one and is no node is a router: it forwards.
    pub ports: Vec<HostPort>,
    /// The host's roles in the cluster. A client has none.
    pub roles: Vec<Role>,
    /// The weight under the policy "weighted".
    pub weight: u8,
    /// The cable of its first interface.
    pub link: Link,
    /// The CPU time that everything on the host may use together. `None`: there is no limit.
    pub cpu: Option<Cpu>,
    /// Whether its programs see a wall clock of its own, which can be set wrong.
    pub own_clock: bool,
    /// Whether its node has only its own keys, and not the cluster's secret.
    pub own_keys: bool,
    /// The things that run on the host, with unique names.
    pub run: Vec<Thing>,
}

/// A further interface of a router or a node.
#[derive(Clone, Debug)]
pub struct HostPort {
    /// The LAN of the interface. `None`: the LAN of all that name no LAN.
    pub lan: Option<LanName>,
    /// The addresses of the interface, at least one.
    pub addresses: Vec<HostAddress>,
}

/// What a node does in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Connection server.
    Cs,
    /// Data server.
    Ds,
    /// Switch, in front of the connection servers.
    Switch,
    /// Dispatcher.
    Dispatcher,
    /// I/O server.
    Io,
    /// Application node.
    App,
}

/// The cable between a host and the bridge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Link {
    /// The rate in each direction. `None`: as fast as the machine can. Packets that a host sends by `XDP_TX`
    /// pass no queue, so what a connection server forwards is limited only at the receiving end.
    pub rate: Option<Rate>,
    /// The probability that a packet is lost, in each direction.
    pub loss: Loss,
    /// The MTU. `None`: 1500 bytes.
    pub mtu: Option<Mtu>,
}

/// The table `[config]`: sections of baton.toml for the whole cluster. `[local]` and `[[node]]` are not
/// among them, because they are made from the hosts.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    pub(crate) cluster: toml::Table,
    pub(crate) cs: Option<toml::Table>,
    pub(crate) failover: Option<toml::Table>,
    pub(crate) forwarding: Option<toml::Table>,
    pub(crate) service: Vec<toml::Table>,
}

impl Lab {
    /// The lab's name, which its namespaces and directories carry.
    pub fn name(&self) -> &LabName {
        &self.name
    }

    /// The hosts in the order of the file, without the bridge.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// The LANs that have a name, once each.
    pub fn lans(&self) -> Vec<&LanName> {
        let ports = self.hosts.iter().flat_map(|host| &host.ports);
        let ports = ports.map(|port| &port.lan);
        let all = self.hosts.iter().map(|host| &host.lan).chain(ports);
        let mut lans: Vec<_> = all.flatten().collect();
        lans.sort();
        lans.dedup();
        lans
    }

    /// The host of this name.
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name.as_str() == name)
    }

    /// The name of the first candidate of failover, which is to be in front. `None`: no candidates are listed.
    pub(crate) fn preferred(&self) -> Option<&str> {
        let failover = self.config.as_ref()?.failover.as_ref()?;
        failover.get("candidates")?.get(0)?.as_str()
    }
}

impl Host {
    /// The host's own address in the cluster.
    pub fn address(&self) -> IpAddr {
        let first = self.addresses[0].ip(); // at least one: `check` refuses a host without
        self.node_address.unwrap_or(first)
    }

    /// The names of the host's interfaces, inside the host.
    pub fn interfaces(&self) -> Vec<String> {
        (0..=self.ports.len())
            .map(|at| format!("eth{at}"))
            .collect()
    }

    /// Whether the host forwards between its interfaces.
    pub fn is_router(&self) -> bool {
        !self.ports.is_empty() && !self.is_node()
    }

    /// Whether the host is a connection server.
    pub fn is_cs(&self) -> bool {
        self.roles.contains(&Role::Cs)
    }

    /// Whether an XDP program on the host sends packets.
    pub fn has_xdp(&self) -> bool {
        self.is_cs() || self.roles.contains(&Role::Switch)
    }

    /// Whether the host is a data server.
    pub fn is_ds(&self) -> bool {
        self.roles.contains(&Role::Ds)
    }

    /// Whether programs on the host have virtual sockets.
    pub fn is_app(&self) -> bool {
        self.roles.contains(&Role::App)
    }

    /// Whether the host belongs to the cluster. A host that does not is a client or a router.
    pub fn is_node(&self) -> bool {
        !self.roles.is_empty()
    }

    /// Whether the host's first interface has an IPv6 address.
    pub fn has_ipv6(&self) -> bool {
        self.addresses.iter().any(|address| address.ip().is_ipv6())
    }

    /// The thing on the host that has this name.
    pub fn thing(&self, name: &str) -> Option<&Thing> {
        self.run.iter().find(|thing| thing.name() == name)
    }
}

impl Role {
    /// The role's name in files.
    pub fn name(self) -> &'static str {
        match self {
            Role::Cs => "cs",
            Role::Ds => "ds",
            Role::Switch => "switch",
            Role::Dispatcher => "dispatcher",
            Role::Io => "io",
            Role::App => "app",
        }
    }
}
