//! What a node reports about itself, to people and to programs.

mod certificate;
mod clock;
#[cfg(any(test, feature = "example"))]
mod example;
mod failover;
mod forwarding;
mod migration;
pub mod tallies;
mod tally;
mod version;

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

pub use certificate::Certificate;
#[cfg(any(test, feature = "example"))]
pub use example::example;
pub use failover::Failover;
pub use forwarding::{Channel, Forwarding, MissedPort, Port};
pub use migration::Migration;
pub use tally::{Bytes, Tally};
pub use version::speaks;

/// The answer to `baton status`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Status {
    /// Name of the node.
    pub node: String,
    /// "cs", "ds" or both, or "switch", "io" or "app".
    pub roles: Vec<String>,
    /// The interface that clients come by.
    pub interface: String,
    /// All interfaces of the node, beginning with `interface`. The list is empty if the daemon knows only one.
    #[serde(default)]
    pub interfaces: Vec<String>,
    /// For how many seconds an interface has been gone. The node waits for it, and does nothing else.
    #[serde(default)]
    pub interface_gone: Option<u64>,
    /// The interfaces that are gone.
    #[serde(default)]
    pub interfaces_gone: Vec<String>,
    /// "native" or "generic"; absent on a pure data server.
    pub xdp: Option<String>,
    /// Seconds since the daemon started.
    pub uptime: u64,
    /// All nodes of the cluster, including this one.
    pub nodes: Vec<Peer>,
    /// The services that clients reach.
    pub services: Vec<Service>,
    /// The TCP table, on a connection server.
    pub flows: Option<Flows>,
    /// Which connection server is in front; only on candidates of failover.
    #[serde(default)]
    pub failover: Option<Failover>,
    /// Entries that went to other connection servers or came from them; only on connection servers.
    #[serde(default)]
    pub migration: Option<Migration>,
    /// The channels; only on I/O servers and application nodes.
    #[serde(default)]
    pub forwarding: Option<Forwarding>,
    /// The certificates that clients are shown by this data server's agent.
    #[serde(default)]
    pub certificates: Vec<Certificate>,
    /// Every counter of the programs.
    pub counters: BTreeMap<String, u64>,
}

/// One node of the cluster, as this one sees it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Peer {
    /// Its name.
    pub name: String,
    /// The node's own address.
    pub address: String,
    /// "cs", "ds" or both, or "switch".
    pub roles: Vec<String>,
    /// "this node", "alive", "silent", "dead", "never heard of" or "not watched here".
    pub state: String,
    /// Whether the node takes no new requests because an operator drains it.
    #[serde(default)]
    pub draining: bool,
    /// The number of established connections of each service, as the node itself says; data servers only.
    #[serde(default)]
    pub connections: BTreeMap<String, u32>,
    /// Whether the next hop to the node is known; only on connection servers and on a switch.
    pub reachable: Option<bool>,
    /// Connections given to the node since the start; only on connection servers.
    pub adoptions: Option<u64>,
    /// Live flows that the node owns; only on connection servers.
    pub flows: Option<u32>,
    /// Processor load in permille, as the node itself says.
    pub cpu: Option<u16>,
    /// How many milliseconds its clock was behind ours at its last message. The network's delay is included.
    pub clock_skew_ms: Option<i64>,
    /// Whether the node's messages are refused because of its clock.
    #[serde(default)]
    pub clock_refused: bool,
    /// The version of LCCP that the node speaks, if it differs from this node's.
    #[serde(default)]
    pub lccp_version: Option<u8>,
    /// What the node had to do as a data server; only on connection servers.
    #[serde(default)]
    pub tally: Option<Tally>,
}

impl Peer {
    /// Whether the node's heartbeats arrive, or it is this node.
    pub fn is_alive(&self) -> bool {
        matches!(self.state.as_str(), "this node" | "alive")
    }

    /// Whether the node's heartbeats are to come here.
    pub fn is_watched(&self) -> bool {
        self.state != "not watched here"
    }
}

/// A service, as this node sees it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Service {
    /// Its name.
    pub name: String,
    /// Cluster address and port.
    pub address: String,
    /// How a data server is chosen for a request that no route takes.
    pub policy: String,
    /// The pools to which the routes lead.
    pub pools: Vec<Pool>,
    /// The routes to these pools, in the order of the configuration.
    pub routes: Vec<Route>,
    /// The tally of the requests that no route takes; only on connection servers.
    pub rest: Option<Tally>,
    /// Data servers that take requests, of the service itself or of one of its pools. On a switch:
    /// connection servers that get its packets.
    pub taking: Vec<String>,
    /// The nodes that take nothing, each with the reason.
    pub out: Vec<(String, String)>,
    /// What this node's own check of its server says; data servers only.
    pub local_health: Option<String>,
}

/// Some data servers of a service, and the routes that lead to them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// How one of the pool's data servers is chosen.
    pub policy: String,
    /// Host and path of each route that leads here.
    pub routes: Vec<String>,
    /// The pool's data servers that take requests.
    pub taking: Vec<String>,
    /// Connection servers only.
    pub tally: Option<Tally>,
}

/// A route of a service: which requests go to a pool.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Route {
    /// Host and path.
    pub route: String,
    /// The name of the pool.
    pub pool: String,
    /// Connection servers only.
    pub tally: Option<Tally>,
}

/// How full the TCP table is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Flows {
    /// Entries in use at the last sweep.
    pub live: u32,
    /// Entries there is room for.
    pub capacity: u32,
    /// Entries expired since the daemon started.
    pub expired: u64,
}

impl Peer {
    /// Established connections of all services.
    pub fn open(&self) -> u64 {
        self.connections.values().copied().map(u64::from).sum()
    }
}

impl Status {
    /// The names of all interfaces in one line, for people.
    pub fn all_interfaces(&self) -> String {
        self.interface_names().join(", ")
    }

    fn which_are_gone(&self) -> String {
        match &self.interfaces_gone[..] {
            [] => format!("the interface {} is", self.interface),
            [one] => format!("the interface {one} is"),
            several => format!("the interfaces {} are", several.join(", ")),
        }
    }

    /// The names of all interfaces. A daemon that knows only one names it in `interface` alone.
    pub fn interface_names(&self) -> Vec<String> {
        match &self.interfaces[..] {
            [] => vec![self.interface.clone()],
            all => all.to_vec(),
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let xdp = self
            .xdp
            .as_ref()
            .map_or(String::new(), |mode| format!(", XDP {mode}"));
        writeln!(
            f,
            "{} ({}) on {}{xdp}, up {} s",
            self.node,
            self.roles.join("+"),
            self.all_interfaces(),
            self.uptime
        )?;
        if let Some(seconds) = self.interface_gone {
            return writeln!(
                f,
                "{} gone for {seconds} s: this node has given up its cluster addresses and programs, and starts again \
                 when all its interfaces are there (see `ip link`, and the log)",
                self.which_are_gone()
            );
        }
        if self.xdp.as_deref() == Some("generic") {
            writeln!(
                f,
                "XDP runs in generic mode on {}: several times slower than native",
                self.all_interfaces()
            )?;
        }
        if let Some(flows) = &self.flows {
            let percent = 100.0 * f64::from(flows.live) / f64::from(flows.capacity.max(1));
            writeln!(
                f,
                "flows: {} of {} ({percent:.1} %), {} expired",
                flows.live, flows.capacity, flows.expired
            )?;
        }
        if let Some(failover) = &self.failover {
            writeln!(f, "{failover}")?;
        }
        if let Some(migration) = self.migration.as_ref().filter(|of| of.is_worth_a_line()) {
            writeln!(f, "{migration}")?;
        }
        for warning in self.clock_warnings().iter().chain(&self.version_warnings()) {
            writeln!(f, "{warning}")?;
        }
        if let Some(forwarding) = &self.forwarding {
            write!(f, "{forwarding}")?;
        } else {
            writeln!(f, "\nservices")?;
        }
        for service in &self.services {
            writeln!(
                f,
                "  {} {} {}: {}",
                service.name,
                service.address,
                service.policy,
                names(&service.taking)
            )?;
            if let Some(tally) = &service.rest {
                writeln!(f, "    {tally}")?;
            }
            for pool in &service.pools {
                let (name, policy) = (&pool.name, &pool.policy);
                let (routes, taking) = (pool.routes.join(" "), names(&pool.taking));
                writeln!(f, "    pool {name} {policy} ({routes}): {taking}")?;
                if let Some(tally) = &pool.tally {
                    writeln!(f, "      {tally}")?;
                }
                // If a pool has only one route, the route's tally adds nothing to the pool's.
                let its_routes = service.routes.iter().filter(|route| route.pool == *name);
                for route in its_routes.filter(|_| pool.routes.len() > 1) {
                    if let Some(tally) = &route.tally {
                        writeln!(f, "      {}: {tally}", route.route)?;
                    }
                }
            }
            for (node, why) in &service.out {
                writeln!(f, "    out: {node}: {why}")?;
            }
            if let Some(health) = &service.local_health {
                writeln!(f, "    server here: {health}")?;
            }
        }
        writeln!(f, "\nnodes")?;
        for peer in &self.nodes {
            write!(
                f,
                "  {:<12} {:<16} {:<6} {}",
                peer.name,
                peer.address,
                peer.roles.join("+"),
                peer.state
            )?;
            if peer.draining {
                write!(f, ", drains ({} connections open)", peer.open())?;
            }
            if let (Some(adoptions), Some(flows)) = (peer.adoptions, peer.flows) {
                write!(f, ", {adoptions} connections given, {flows} live")?;
            }
            if peer.reachable == Some(false) {
                write!(f, ", next hop unknown")?;
            }
            writeln!(f)?;
            if let Some(tally) = &peer.tally {
                writeln!(f, "    {tally}")?;
            }
        }
        writeln!(f, "\ncounters (those not zero)")?;
        for (name, value) in self.counters.iter().filter(|(_, value)| **value > 0) {
            writeln!(f, "  {name:<24} {value}")?;
        }
        Ok(())
    }
}

fn names(taking: &[String]) -> String {
    if taking.is_empty() {
        "no data server takes requests".into()
    } else {
        taking.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_drains_is_shown_with_what_is_left() {
        let mut status = example();
        assert!(!status.to_string().contains("drains"));
        let ds1 = &mut status.nodes[1];
        ds1.draining = true;
        ds1.connections = [("web".to_owned(), 3), ("api".to_owned(), 4)].into();
        let text = status.to_string();
        assert!(
            text.contains("alive, drains (7 connections open), "),
            "{text}"
        );
    }
}
