//! What a node says of itself, to people and to programs.

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

#[cfg(any(test, feature = "example"))]
pub use example::example;
pub use failover::Failover;
pub use forwarding::{Channel, Forwarding, MissedPort, Port};
pub use migration::Migration;
pub use tally::{Bytes, Tally};
pub use version::speaks;

/// The answer to `baton status`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    /// Name of the node.
    pub node: String,
    /// "cs", "ds" or both, or "switch", "io" or "app".
    pub roles: Vec<String>,
    /// The interface that clients come by.
    pub interface: String,
    /// All its interfaces, that one first; empty of a daemon that knows one only.
    #[serde(default)]
    pub interfaces: Vec<String>,
    /// For how many seconds one of them is gone; the node waits for it, and does nothing else.
    #[serde(default)]
    pub interface_gone: Option<u64>,
    /// Those that are gone.
    #[serde(default)]
    pub interfaces_gone: Vec<String>,
    /// "native" or "generic"; absent on a pure data server.
    pub xdp: Option<String>,
    /// Seconds since the daemon started.
    pub uptime: u64,
    /// The other nodes, and this one.
    pub nodes: Vec<Peer>,
    /// What clients reach.
    pub services: Vec<Service>,
    /// The TCP table, on a connection server.
    pub flows: Option<Flows>,
    /// Who is in front; candidates of failover only.
    #[serde(default)]
    pub failover: Option<Failover>,
    /// Entries that went over to other connection servers or came; connection servers only.
    #[serde(default)]
    pub migration: Option<Migration>,
    /// Channels; I/O servers and application nodes only.
    #[serde(default)]
    pub forwarding: Option<Forwarding>,
    /// Every counter of the programs.
    pub counters: BTreeMap<String, u64>,
}

/// One node of the cluster, as this one sees it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Peer {
    /// Its name.
    pub name: String,
    /// Its own address.
    pub address: String,
    /// "cs", "ds" or both, or "switch".
    pub roles: Vec<String>,
    /// "this node", "alive", "silent", "dead" or "never heard of".
    pub state: String,
    /// Whether it takes no new requests because somebody wants that.
    #[serde(default)]
    pub draining: bool,
    /// Established connections by service, as it says itself; data servers only.
    #[serde(default)]
    pub connections: BTreeMap<String, u32>,
    /// Whether its next hop is known; connection servers and switch only.
    pub reachable: Option<bool>,
    /// Connections given to it since the start; connection servers only.
    pub adoptions: Option<u64>,
    /// Live flows it owns; connection servers only.
    pub flows: Option<u32>,
    /// Processor load in permille, as it says.
    pub cpu: Option<u16>,
    /// How far its clock is behind ours, milliseconds, at its last message (with the network's delay).
    pub clock_skew_ms: Option<i64>,
    /// Whether its messages are refused for that.
    #[serde(default)]
    pub clock_refused: bool,
    /// Which version of LCCP it speaks, if it is another than this node's.
    #[serde(default)]
    pub lccp_version: Option<u8>,
    /// What it had to do as a data server; connection servers only.
    #[serde(default)]
    pub tally: Option<Tally>,
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
    /// Where routes lead.
    pub pools: Vec<Pool>,
    /// Which requests go there, in the order of the configuration.
    pub routes: Vec<Route>,
    /// Of what no route takes; connection servers only.
    pub rest: Option<Tally>,
    /// Data servers that take requests, of the service itself or of one of its pools. On a switch:
    /// connection servers that get its packets.
    pub taking: Vec<String>,
    /// Those that do not, each with why.
    pub out: Vec<(String, String)>,
    /// What this node's own check of its server says; data servers only.
    pub local_health: Option<String>,
}

/// Some data servers of a service, and what they answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// How a data server of it is chosen.
    pub policy: String,
    /// Host and path of each route that leads here.
    pub routes: Vec<String>,
    /// Those of its data servers that take requests.
    pub taking: Vec<String>,
    /// Connection servers only.
    pub tally: Option<Tally>,
}

/// Which requests go to a pool.
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
    /// The interfaces, for people.
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

    /// The names of all interfaces; a daemon that knows one only says so elsewhere.
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
                "{} gone for {seconds} s: this node has let go of its cluster addresses and programs, and begins anew \
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
                // Of a pool's only route there is no more to say.
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
