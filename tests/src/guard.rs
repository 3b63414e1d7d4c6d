//! The rule that holds in every scenario: a data server never sends a RST for a connection it does
//! not own.
//!
//! nftables watches for it at the data servers' ports on the bridge, where no data server can notice. A flow belongs to
//! a data server from the moment that server sends anything but a RST in it, until another data server does.
//!
//! A socket that ends sends a RST with ACK, while an answer to a segment that has no socket is a RST alone
//! (RFC 9293, 3.10.7.1). If a daemon was killed, its agent's sockets end, and one that had just adopted its connection
//! may not have sent anything but that RST.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Stdio;

use anyhow::{Context as _, Result, bail, ensure};
use baton_lab::{BRIDGE, Role, Running};
use serde_json::Value;

const TABLE: &str = "netdev baton_guard";

/// The watch over the data servers of one lab.
pub struct Guard {
    servers: Vec<String>,
}

impl Guard {
    /// Begins to watch. `clusters` are the cluster addresses, which clients know.
    ///
    /// # Errors
    /// nft refuses.
    pub fn set(lab: &Running, clusters: &[String]) -> Result<Guard> {
        let servers = lab
            .lab()
            .hosts()
            .iter()
            .filter(|host| host.roles == [Role::Ds]);
        let guard = Guard {
            servers: servers.map(|host| host.name.as_str().to_owned()).collect(),
        };
        let mut nft = lab.exec(BRIDGE)?;
        nft.args(["nft", "-f", "-"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = nft.spawn().context("cannot run nft")?;
        if let Some(mut input) = child.stdin.take() {
            input.write_all(guard.script(clusters).as_bytes())?;
        }
        let output = child.wait_with_output()?;
        ensure!(
            output.status.success(),
            "nft: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(guard)
    }

    /// Checks what was seen. `killed` names the hosts whose daemon was killed.
    ///
    /// # Errors
    /// A data server has broken the rule; the error says which.
    pub fn check(&self, lab: &Running, killed: &BTreeSet<String>) -> Result<()> {
        let listed = listed(lab)?;
        for server in &self.servers {
            let counted =
                ["foreign", "ended"].map(|counter| count(&listed, &format!("{counter}_{server}")));
            let [Some(foreign), Some(ended)] = counted else {
                bail!("nobody watched {server}: nft lists no counter for it");
            };
            ensure!(
                foreign == 0 && (ended == 0 || killed.contains(server)),
                "{server} sent {foreign} RST(s), and {ended} with ACK, from the cluster address for connections it does not own"
            );
        }
        Ok(())
    }

    fn script(&self, clusters: &[String]) -> String {
        let clusters = clusters.join(", ");
        let mut script = format!("table {TABLE} {{\n");
        // Writing to a String never fails.
        for server in &self.servers {
            let _ = writeln!(
                script,
                "counter foreign_{server} {{ }}\n\
                 counter ended_{server} {{ }}\n\
                 counter own_{server} {{ }}\n\
                 set flows_{server} {{ type ipv4_addr . inet_service; flags dynamic, timeout; \
                 timeout 5m; size 1000000; }}"
            );
        }
        for server in &self.servers {
            let others: String = self
                .servers
                .iter()
                .filter(|other| *other != server)
                .map(|other| format!(" delete @flows_{other} {{ ip daddr . tcp dport }}"))
                .collect();
            let _ = writeln!(
                script,
                "chain from_{server} {{\n\
                 type filter hook ingress device \"{server}\" priority -10; policy accept;\n\
                 ip saddr {{ {clusters} }} tcp flags & (rst | ack) == rst ip daddr . tcp dport != @flows_{server} \
                 counter name foreign_{server}\n\
                 ip saddr {{ {clusters} }} tcp flags & (rst | ack) == (rst | ack) ip daddr . tcp dport != @flows_{server} \
                 counter name ended_{server}\n\
                 ip saddr {{ {clusters} }} tcp flags & rst == rst ip daddr . tcp dport @flows_{server} \
                 counter name own_{server}\n\
                 ip saddr {{ {clusters} }} tcp flags & rst == 0 \
                 update @flows_{server} {{ ip daddr . tcp dport }}{others}\n}}"
            );
        }
        script + "}\n"
    }
}

/// The number of RSTs from the cluster address that a data server has sent so far for connections that it owns.
///
/// # Errors
/// The lab has no such data server.
pub fn own_resets(lab: &Running, server: &str) -> Result<u64> {
    count(&listed(lab)?, &format!("own_{server}"))
        .with_context(|| format!("{server} is no data server that is watched"))
}

fn listed(lab: &Running) -> Result<Value> {
    let output = lab
        .exec(BRIDGE)?
        .args(["nft", "-j", "list", "counters"])
        .output()?;
    serde_json::from_slice(&output.stdout).context("nft lists no counters")
}

fn count(listed: &Value, name: &str) -> Option<u64> {
    let entries = listed["nftables"].as_array()?;
    entries.iter().find_map(|entry| {
        let counter = entry.get("counter")?;
        (counter["name"] == name).then(|| counter["packets"].as_u64())?
    })
}
