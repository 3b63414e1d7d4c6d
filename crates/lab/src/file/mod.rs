//! The lab file: which hosts there are, how they are linked, and what runs on them.
//!
//! One LAN joins all hosts that name no other. A host's `address` and `link` speak of its first
//! interface; a router, or a node on several networks, has more, each a `port`.

mod check;
mod names;
mod thing;
mod values;

use std::net::IpAddr;

use serde::Deserialize;

pub use names::{BRIDGE, HostName, LabName, LanName, ThingName};
pub use thing::{Program, Server, ServerKind, Thing};
pub use values::{Cpu, HostAddress, Loss, Mtu, Port, Rate};

use crate::error::Result;

/// A lab file that makes sense: names and addresses are unique, everything fits together.
#[derive(Clone, Debug)]
pub struct Lab {
    pub(crate) name: LabName,
    pub(crate) hosts: Vec<Host>,
    pub(crate) config: Option<Config>,
    pub(crate) source: String,
}

/// A host: a network namespace with an interface, `eth0`, on one of the lab's LANs, and maybe further ones.
#[derive(Clone, Debug)]
pub struct Host {
    /// Unique in the lab.
    pub name: HostName,
    /// At least one.
    pub addresses: Vec<HostAddress>,
    /// The node's own address in the cluster, one of those of all its interfaces. None: the first.
    pub node_address: Option<IpAddr>,
    /// Where it is. None: on the LAN of all that name none.
    pub lan: Option<LanName>,
    /// The router to everywhere else.
    pub gateway: Option<IpAddr>,
    /// Further interfaces, `eth1` and so on. Unless it is a node, it is a router with one: it forwards.
    pub ports: Vec<HostPort>,
    /// Its part in the cluster: none for a client.
    pub roles: Vec<Role>,
    /// Its share under the policy "weighted".
    pub weight: u8,
    /// Its cable.
    pub link: Link,
    /// What all that runs on it may use of the CPUs. None: everything.
    pub cpu: Option<Cpu>,
    /// Whether its programs see a wall clock of its own, which can be set wrong.
    pub own_clock: bool,
    /// Whether its node has only its own keys, and not the cluster's secret.
    pub own_keys: bool,
    /// What runs on it, names unique.
    pub run: Vec<Thing>,
}

/// A further interface of a router or a node.
#[derive(Clone, Debug)]
pub struct HostPort {
    /// Where it is. None: on the LAN of all that name none.
    pub lan: Option<LanName>,
    /// At least one.
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
    /// In front of the connection servers.
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
    /// In each direction. None: as fast as the machine can. What a host sends by `XDP_TX` passes
    /// no queue, so that of a connection server's forwarding only the receiving end is limited.
    pub rate: Option<Rate>,
    /// For each packet in each direction.
    pub loss: Loss,
    /// None: 1500.
    pub mtu: Option<Mtu>,
}

/// The table `[config]`: keys of baton.toml that hold for the whole cluster. `[local]` and
/// `[[node]]` are not among them: they follow from the hosts.
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
    /// Reads a lab file.
    ///
    /// # Errors
    /// [`crate::Error::Syntax`] or [`crate::Error::LabFile`], with the line and what to write instead.
    pub fn parse(text: &str) -> Result<Lab> {
        check::parse(text)
    }

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

    /// The first of the candidates of failover: who is to be in front. None: there is no failover.
    pub(crate) fn preferred(&self) -> Option<&str> {
        let failover = self.config.as_ref()?.failover.as_ref()?;
        failover.get("candidates")?.get(0)?.as_str()
    }
}

impl Host {
    /// Its own address in the cluster.
    pub fn address(&self) -> IpAddr {
        let first = self.addresses[0].ip(); // at least one: `check` refuses a host without
        self.node_address.unwrap_or(first)
    }

    /// Its interfaces, as programs on it call them.
    pub fn interfaces(&self) -> Vec<String> {
        (0..=self.ports.len())
            .map(|at| format!("eth{at}"))
            .collect()
    }

    /// Whether it forwards between its interfaces.
    pub fn is_router(&self) -> bool {
        !self.ports.is_empty() && !self.is_node()
    }

    /// Whether it is a connection server.
    pub fn is_cs(&self) -> bool {
        self.roles.contains(&Role::Cs)
    }

    /// Whether an XDP program sends from it.
    pub fn has_xdp(&self) -> bool {
        self.is_cs() || self.roles.contains(&Role::Switch)
    }

    /// Whether it is a data server.
    pub fn is_ds(&self) -> bool {
        self.roles.contains(&Role::Ds)
    }

    /// Whether its programs have virtual sockets.
    pub fn is_app(&self) -> bool {
        self.roles.contains(&Role::App)
    }

    /// Whether it belongs to the cluster. One that does not is a client.
    pub fn is_node(&self) -> bool {
        !self.roles.is_empty()
    }

    /// Whether it has an IPv6 address.
    pub fn has_ipv6(&self) -> bool {
        self.addresses.iter().any(|address| address.ip().is_ipv6())
    }

    /// What runs on it under this name.
    pub fn thing(&self, name: &str) -> Option<&Thing> {
        self.run.iter().find(|thing| thing.name() == name)
    }
}

impl Role {
    /// Its name in files.
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
