//! Channels between an I/O server and application nodes.

use std::fmt;

use baton_saps::ChannelReport;
use serde::{Deserialize, Serialize};

/// What an I/O server or an application node knows about its channels.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Forwarding {
    /// "tcp" or "quic".
    pub network: String,
    /// The I/O server's cluster addresses.
    pub addresses: Vec<String>,
    /// On an I/O server, how one of several nodes that listen on a port is chosen.
    #[serde(default)]
    pub policy: String,
    /// The ports that are listened on.
    pub ports: Vec<Port>,
    /// On an application node, the ports on which programs listen and the I/O server does not.
    #[serde(default)]
    pub refused: Vec<MissedPort>,
    /// The ports on which no program can listen, because other programs of the I/O server's host have them.
    #[serde(default)]
    pub taken: Vec<MissedPort>,
    /// The channels, one for each node at the other end.
    pub channels: Vec<Channel>,
}

/// A port of the cluster addresses.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Port {
    /// The number of the port.
    pub port: u16,
    /// "IPv4", "IPv6" or "IPv4 and IPv6".
    pub families: String,
    /// How many listen: on an I/O server the nodes that take turns, on an application node the I/O server.
    pub listeners: usize,
}

/// A port that programs cannot have.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MissedPort {
    /// The number of the port.
    pub port: u16,
    /// "IPv4", "IPv6" or "IPv4 and IPv6".
    pub families: String,
    /// Why programs cannot have the port.
    pub reason: String,
}

/// A channel: its present state, and what it counted since the start.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Channel {
    /// The node at the other end.
    pub node: String,
    /// The address from which that node speaks, or at which it is spoken to.
    pub address: String,
    /// Whether the channel is up.
    pub up: bool,
    /// The number of connections at present.
    pub connections: u64,
    /// How many of the connections have something to send and no credit.
    pub stalled: u64,
    /// The number of bytes that all connections together may send: the sum of L_s - A_s.
    pub credit: u64,
    /// Bytes received and not read yet.
    pub buffered: u64,
    /// Bytes that wait to be sent.
    pub queued: u64,
    /// Connections made since the start.
    pub made: u64,
    /// How often a connection had something to send and no credit.
    pub stalls: u64,
    /// Bytes sent since the start.
    pub bytes_sent: u64,
    /// Bytes received since the start.
    pub bytes_received: u64,
}

impl Channel {
    /// The channel to the node of this name.
    pub fn new(node: String, of: &ChannelReport) -> Self {
        let (gauges, counters) = (&of.gauges, &of.counters);
        Self {
            node,
            address: of.address.to_string(),
            up: of.is_up,
            connections: gauges.connections,
            stalled: gauges.stalled,
            credit: gauges.credit,
            buffered: gauges.buffered,
            queued: gauges.queued,
            made: counters.made,
            stalls: counters.stalls,
            bytes_sent: counters.bytes_sent,
            bytes_received: counters.bytes_received,
        }
    }
}

impl Forwarding {
    /// Whether the channel to the node of this name is up.
    pub fn is_up(&self, node: &str) -> bool {
        (self.channels.iter()).any(|channel| channel.up && channel.node == node)
    }
}

impl fmt::Display for Forwarding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (addresses, network) = (self.addresses.join(", "), &self.network);
        write!(f, "\nforwarding for {addresses} over {network}")?;
        if !self.policy.is_empty() {
            write!(f, ", {}", self.policy)?;
        }
        writeln!(f)?;
        for port in &self.ports {
            let (number, families, listeners) = (port.port, &port.families, port.listeners);
            writeln!(f, "  port {number} ({families}): {listeners} listening")?;
        }
        for (ports, what) in [(&self.refused, "not listening"), (&self.taken, "taken")] {
            for port in ports {
                let (number, families, reason) = (port.port, &port.families, &port.reason);
                writeln!(f, "  port {number} ({families}): {what}: {reason}")?;
            }
        }
        for channel in &self.channels {
            let Channel {
                node,
                connections,
                stalled,
                credit,
                buffered,
                queued,
                ..
            } = channel;
            if !channel.up {
                writeln!(f, "  {node:<12} no channel")?;
                continue;
            }
            writeln!(
                f,
                "  {node:<12} {connections} connections, {stalled} stalled; credit {credit}, \
                 buffered {buffered}, queued {queued} bytes"
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_shown_and_those_that_are_missing() {
        let channel = Channel {
            node: "app1".into(),
            address: "10.77.0.11:40000".into(),
            up: true,
            connections: 3,
            stalled: 1,
            credit: 131_072,
            buffered: 7,
            queued: 9,
            made: 12,
            stalls: 2,
            bytes_sent: 100,
            bytes_received: 200,
        };
        let mut forwarding = Forwarding {
            network: "quic".into(),
            addresses: vec!["10.77.0.100".into(), "fd77::100".into()],
            ports: vec![Port {
                port: 80,
                families: "IPv4".into(),
                listeners: 4,
            }],
            channels: vec![channel],
            policy: "client".into(),
            refused: vec![MissedPort {
                port: 25,
                families: "IPv6".into(),
                reason: "Address already in use".into(),
            }],
            taken: vec![MissedPort {
                port: 22,
                families: "IPv4".into(),
                reason: "another program".into(),
            }],
        };
        let text = forwarding.to_string();
        assert!(
            text.contains("for 10.77.0.100, fd77::100 over quic, client\n"),
            "{text}"
        );
        for line in [
            "port 80 (IPv4): 4 listening",
            "port 25 (IPv6): not listening: Address already in use",
            "port 22 (IPv4): taken: another program",
        ] {
            assert!(text.contains(line), "{text}");
        }
        assert!(
            text.contains("3 connections, 1 stalled; credit 131072"),
            "{text}"
        );
        assert!(forwarding.is_up("app1") && !forwarding.is_up("app2"));
        forwarding.channels[0].up = false;
        assert!(forwarding.to_string().contains("app1         no channel"));
    }
}
