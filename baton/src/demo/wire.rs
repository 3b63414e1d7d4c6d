//! Counts what crosses the lab's wires, by nftables on the bridge: independently of baton's own counters, and where no
//! host can interfere.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::SocketAddr;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use baton_lab::{BRIDGE, HostView, Running};
use serde_json::Value;

use super::stage::Stage;

/// A number of frames and of their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crossed {
    /// The number of frames. A frame of a virtual link holds up to 64 KiB of a stream.
    pub frames: u64,
    /// The number of bytes, from the IP header on; for frames from one host to another, the Ethernet header counts,
    /// too.
    pub bytes: u64,
}

/// The frames that crossed each wire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wire {
    /// Requests and acknowledgements, from the client to the cluster address.
    pub asked: Crossed,
    /// Packets that the connection server itself sends to the client: SYN-ACKs, and resets if any.
    pub greeted: Crossed,
    /// Client packets that the connection server passed on to data servers.
    pub forwarded: Crossed,
    /// Messages from the connection server to data servers: adoptions and heartbeats.
    pub told: Crossed,
    /// Responses that passed into or out of the connection server.
    pub detoured: Crossed,
    /// Responses that data servers sent, by the data server's name.
    pub answered: BTreeMap<String, Crossed>,
}

const TABLE: &str = "netdev baton_demo";
/// The IP protocol of the messages between nodes, unless another one is configured.
const LCCP: u8 = 253;

/// Begins to count.
pub fn watch(stage: &Stage, at: SocketAddr) -> Result<()> {
    let mut nft = stage.lab()?.exec(BRIDGE)?;
    nft.args(["nft", "-f", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = nft.spawn().context("cannot run nft")?;
    if let Some(mut input) = child.stdin.take() {
        let script = script(&stage.client, &stage.cs, &stage.servers, at);
        input.write_all(script.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    let why = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "nft cannot count on the bridge: {why}"
    );
    Ok(())
}

/// Reads what was counted so far.
pub fn read(lab: &Running) -> Result<Wire> {
    let output = lab
        .exec(BRIDGE)?
        .args(["nft", "-j", "list", "counters"])
        .output()
        .context("cannot run nft")?;
    let text = String::from_utf8_lossy(&output.stdout);
    parse(&text).with_context(|| format!("nft lists no counters as expected: {text}"))
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

fn parse(text: &str) -> Option<Wire> {
    let listed: Value = serde_json::from_str(text).ok()?;
    let counters: BTreeMap<&str, Crossed> = listed["nftables"]
        .as_array()?
        .iter()
        .filter_map(|entry| {
            let counter = entry.get("counter")?;
            let crossed = Crossed {
                frames: counter["packets"].as_u64()?,
                bytes: counter["bytes"].as_u64()?,
            };
            Some((counter["name"].as_str()?, crossed))
        })
        .collect();
    let named = |name: &str| counters.get(name).copied();
    Some(Wire {
        asked: named("asked")?,
        greeted: named("greeted")?,
        forwarded: named("forwarded")?,
        told: named("told")?,
        detoured: named("detoured")?,
        answered: counters
            .iter()
            .filter_map(|(name, crossed)| {
                Some((name.strip_prefix("answered_")?.to_owned(), *crossed))
            })
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nft_lists_is_understood() {
        let counter = |name: &str, packets: u64, bytes: u64| {
            format!(
                r#"{{"counter": {{"family": "netdev", "table": "t", "name": "{name}",
                    "handle": 1, "packets": {packets}, "bytes": {bytes}}}}}"#
            )
        };
        let all = [
            counter("asked", 1, 10),
            counter("greeted", 2, 20),
            counter("forwarded", 3, 30),
            counter("told", 4, 40),
            counter("detoured", 5, 50),
            counter("answered_ds1", 6, 60),
        ];
        let text = |counters: &[String]| {
            format!(
                r#"{{"nftables": [{{"metainfo": {{}}}}, {}]}}"#,
                counters.join(",")
            )
        };
        let wire = parse(&text(&all)).unwrap_or_default();
        let crossed = |frames, bytes| Crossed { frames, bytes };
        assert_eq!(wire.detoured, crossed(5, 50));
        assert_eq!(
            wire.answered,
            BTreeMap::from([("ds1".to_owned(), crossed(6, 60))])
        );
        assert_eq!(
            parse(&text(&all[1..])),
            None,
            "a missing counter is no zero"
        );
        assert_eq!(parse(""), None);
    }
}
