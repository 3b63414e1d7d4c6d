//! The rule that holds in every scenario: a data server never sends a RST for a connection it does
//! not own.
//!
//! nftables watches for it at the data servers' ports on the bridge, where no data server can notice. A flow belongs to
//! a data server from the moment that server sends anything but a RST in it, until another data server does.
//!
//! A socket that ends sends a RST with ACK, while an answer to a segment that has no socket is a RST alone
//! (RFC 9293, 3.10.7.1). If a daemon or its TLS agent was killed, its sockets end, and one that had just adopted its
//! connection may not have sent anything but that RST.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail, ensure};
use baton_lab::{BRIDGE, Role, Running};

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
        lab.nft(BRIDGE, &guard.script(clusters))?;
        Ok(guard)
    }

    /// Checks what was seen. `killed` names the hosts whose daemon was killed.
    ///
    /// # Errors
    /// A data server has broken the rule; the error says which.
    pub fn check(&self, lab: &Running, killed: &BTreeSet<String>) -> Result<()> {
        let counters = lab.nft_counters(BRIDGE)?;
        let count = |name: &str| counters.get(name).map(|counted| counted.packets);
        for server in &self.servers {
            let counted = ["foreign", "ended"].map(|counter| count(&format!("{counter}_{server}")));
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
    let counters = lab.nft_counters(BRIDGE)?;
    let own = counters.get(&format!("own_{server}"));
    own.map(|counted| counted.packets)
        .with_context(|| format!("{server} is no data server that is watched"))
}
