//! Channels between an I/O server and application nodes, as numbers. What they count since the start is among the
//! counters.

use prometheus_client::registry::Registry;

use super::{Labels, counters, gauges};
use crate::status::{Channel, MissedPort, Status};

/// Adds the metrics of the channels, or nothing if the node has no forwarding.
pub fn register(registry: &mut Registry, status: &Status) {
    let Some(forwarding) = &status.forwarding else {
        return;
    };
    let channels = |value: fn(&Channel) -> u64| {
        let row = move |of: &Channel| (vec![("node", of.node.clone())], value(of));
        forwarding.channels.iter().map(row)
    };
    let mut gauge = |name, help, value| gauges(registry, name, help, channels(value));
    gauge(
        "channel_up",
        "1 if the channel to the node is up",
        |channel| channel.up.into(),
    );
    gauge(
        "channel_connections",
        "Connections on the channel",
        |channel| channel.connections,
    );
    gauge(
        "channel_stalled",
        "Connections with data to send but no credit",
        |channel| channel.stalled,
    );
    gauge(
        "channel_credit_bytes",
        "Bytes that all connections together may still send (sum of L_s - A_s)",
        |channel| channel.credit,
    );
    gauge(
        "channel_buffered_bytes",
        "Bytes received but not read yet",
        |channel| channel.buffered,
    );
    gauge(
        "channel_queued_bytes",
        "Bytes that wait to be sent",
        |channel| channel.queued,
    );
    gauges(
        registry,
        "port_refused",
        "1 for each port that a program listens on and the I/O server does not",
        forwarding.refused.iter().map(missed),
    );
    gauges(
        registry,
        "port_taken",
        "1 for each port that another program on the I/O server's host uses",
        forwarding.taken.iter().map(missed),
    );
    let mut counter = |name, help, value| counters(registry, name, help, channels(value));
    counter("channel_made", "Connections made", |channel| channel.made);
    counter(
        "channel_stalls",
        "Times that a connection had data to send but no credit",
        |channel| channel.stalls,
    );
    counter("channel_sent_bytes", "Bytes sent to the node", |channel| {
        channel.bytes_sent
    });
    counter(
        "channel_received_bytes",
        "Bytes received from the node",
        |channel| channel.bytes_received,
    );
}

fn missed(port: &MissedPort) -> (Labels, u64) {
    let families = ("families", port.families.clone());
    (vec![("port", port.port.to_string()), families], 1)
}

#[cfg(test)]
mod tests {
    use super::super::text;
    use crate::status::{Channel, Forwarding, MissedPort, example};

    #[test]
    fn channels_are_there_under_their_names() {
        let mut status = example();
        let told = text(&status).expect("it is written to memory");
        assert!(!told.contains("baton_channel"), "{told}");
        status.forwarding = Some(Forwarding {
            channels: vec![Channel {
                node: "app1".into(),
                address: "10.77.0.11:40000".into(),
                up: true,
                connections: 3,
                stalled: 1,
                credit: 4,
                buffered: 5,
                queued: 6,
                made: 7,
                stalls: 8,
                bytes_sent: 9,
                bytes_received: 10,
            }],
            refused: vec![MissedPort {
                port: 25,
                families: "IPv6".into(),
                reason: "Address already in use".into(),
            }],
            ..Forwarding::default()
        });
        let told = text(&status).expect("it is written to memory");
        for line in [
            r#"baton_port_refused{port="25",families="IPv6"} 1"#,
            r#"baton_channel_up{node="app1"} 1"#,
            r#"baton_channel_stalled{node="app1"} 1"#,
            r#"baton_channel_credit_bytes{node="app1"} 4"#,
            r#"baton_channel_stalls_total{node="app1"} 8"#,
            r#"baton_channel_received_bytes_total{node="app1"} 10"#,
        ] {
            assert!(told.lines().any(|found| found == line), "no {line}\n{told}");
        }
    }
}
