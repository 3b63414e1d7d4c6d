//! Counts what crosses the lab's wires, by nftables on the bridge: independently of baton's own counters, and where no
//! host can interfere.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;

use anyhow::{Context, Result};
use baton_lab::{BRIDGE, Counted, HostView, Running};

use super::stage::Stage;

/// The frames that crossed each wire, and their bytes. A frame of a virtual link holds up to 64 KiB of a stream. Bytes
/// count from the IP header on; for frames from one host to another, the Ethernet header counts, too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wire {
    /// Requests and acknowledgements, from the client to the cluster address.
    pub asked: Counted,
    /// Packets that the connection server itself sends to the client: SYN-ACKs, and resets if any.
    pub greeted: Counted,
    /// Client packets that the connection server passed on to data servers.
    pub forwarded: Counted,
    /// Messages from the connection server to data servers: adoptions and heartbeats.
    pub told: Counted,
    /// Responses that passed into or out of the connection server.
    pub detoured: Counted,
    /// Responses that data servers sent, by the data server's name.
    pub answered: BTreeMap<String, Counted>,
}

const TABLE: &str = "netdev baton_demo";
/// The IP protocol of the messages between nodes, unless another one is configured.
const LCCP: u8 = 253;

/// Begins to count.
pub fn watch(stage: &Stage, at: SocketAddr) -> Result<()> {
    let script = script(&stage.client, &stage.cs, &stage.servers, at);
    Ok(stage.lab()?.nft(BRIDGE, &script)?)
}

/// Reads what was counted so far.
pub fn read(lab: &Running) -> Result<Wire> {
    let counters = lab.nft_counters(BRIDGE)?;
    wire(&counters).with_context(|| format!("nft lists other counters: {counters:?}"))
}

/// The nftables script that counts. Each host's port on the bridge has the host's name.
fn script(client: &HostView, cs: &HostView, servers: &[HostView], at: SocketAddr) -> String {
    let family = if at.is_ipv4() { "ip" } else { "ip6" };
    let (cluster, port) = (at.ip(), at.port());
    let to = format!("{family} daddr {cluster} tcp dport {port}");
    let from = format!("{family} saddr {cluster} tcp sport {port}");
    let hook = |hook: &str, host: &str| {
        format!("type filter hook {hook} device \"{host}\" priority -20; policy accept;")
    };
    let (in_client, in_cs, out_cs) = (
        hook("ingress", &client.name),
        hook("ingress", &cs.name),
        hook("egress", &cs.name),
    );
    let mut script = format!(
        "table {TABLE} {{
counter asked {{ }}
counter greeted {{ }}
counter forwarded {{ }}
counter told {{ }}
counter detoured {{ }}
chain from_client {{
{in_client}
{to} counter name asked
}}
chain from_cs {{
{in_cs}
{from} tcp flags & (syn | ack) == (syn | ack) counter name greeted accept
{from} tcp flags & rst == rst counter name greeted accept
{from} counter name detoured accept
{to} counter name forwarded
meta protocol {family} meta l4proto {LCCP} counter name told
}}
chain to_cs {{
{out_cs}
{from} counter name detoured
}}
"
    );
    for HostView { name, .. } in servers {
        let hook = hook("ingress", name);
        // Writing to a String never fails.
        let _ = write!(
            script,
            "counter answered_{name} {{ }}\n\
             chain from_{name} {{\n{hook}\n{from} counter name answered_{name}\n}}\n"
        );
    }
    script + "}\n"
}

fn wire(counters: &BTreeMap<String, Counted>) -> Option<Wire> {
    let named = |name: &str| counters.get(name).copied();
    Some(Wire {
        asked: named("asked")?,
        greeted: named("greeted")?,
        forwarded: named("forwarded")?,
        told: named("told")?,
        detoured: named("detoured")?,
        answered: counters
            .iter()
            .filter_map(|(name, counted)| {
                Some((name.strip_prefix("answered_")?.to_owned(), *counted))
            })
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_those_of_wires() {
        let names = [
            "asked",
            "greeted",
            "forwarded",
            "told",
            "detoured",
            "answered_ds1",
        ];
        let counted = |packets| Counted {
            packets,
            bytes: 10 * packets,
        };
        let mut counters: BTreeMap<String, Counted> = (names.map(str::to_owned).into_iter())
            .zip((1..).map(counted))
            .collect();
        let wire = super::wire(&counters).unwrap_or_default();
        assert_eq!(wire.detoured, counted(5));
        let answered = BTreeMap::from([("ds1".to_owned(), counted(6))]);
        assert_eq!(wire.answered, answered);
        counters.remove("asked");
        assert_eq!(super::wire(&counters), None, "a missing counter is no zero");
    }
}
