//! Checks the offloads that merge segments before the XDP program sees them: LRO and GRO.

use baton_net::{Adapter, offload::offloads};

use crate::doctor::{
    finding::{Finding, Verdict},
    kernel::proc,
};

const LRO: &str = "lro";
const GRO: &str = "gro";

/// Checks that LRO is off. With LRO the NIC merges segments into packets that can neither be forwarded nor split again.
///
/// A bond receives nothing itself, and its own LRO setting says only what its cards may have. So the cards are checked.
pub async fn check_lro(adapter: &Adapter) -> Finding {
    let bonding = proc::text(&format!("/proc/net/bonding/{}", adapter.name));
    let mut cards = cards_of_bond(&bonding.unwrap_or_default());
    if cards.is_empty() {
        cards.push(adapter.name.clone());
    }
    for card in &cards {
        let on = offloads(card)
            .await
            .map(|offloads| offloads.large_receive());
        let finding = judge_lro(on.map_err(|error| error.to_string()), card);
        if finding.verdict() != Verdict::Good {
            return finding;
        }
    }
    Finding::good(LRO, "off")
}

/// The names of a bond's cards, from the bond's file in /proc/net/bonding.
fn cards_of_bond(bonding: &str) -> Vec<String> {
    let lines = bonding.lines();
    lines
        .filter_map(|line| Some(line.strip_prefix("Slave Interface: ")?.to_owned()))
        .collect()
}

/// Checks that GRO is off. An XDP program in generic mode runs after GRO, so it may get merged segments.
pub async fn check_gro(adapter: &Adapter) -> Finding {
    let on = offloads(&adapter.name)
        .await
        .map(|offloads| offloads.generic_receive());
    judge_gro(on.map_err(|error| error.to_string()), &adapter.name)
}

fn judge_gro(on: Result<bool, String>, interface: &str) -> Finding {
    let remedy = format!(
        "In generic mode the program gets merged segments as one packet, longer than the MTU. Such a packet cannot be \
         sent out of another interface (counter cs_merged_lost), and if it has a request for which ADOPT is due, the \
         client has to send the request again (cs_too_big). Switch GRO off here and on the interfaces below a bridge \
         or bond: ethtool -K {interface} gro off"
    );
    match on {
        Ok(false) => Finding::good(GRO, "off"),
        Ok(true) => Finding::advice(GRO, format!("on for {interface}"), remedy),
        Err(error) => Finding::advice(GRO, error.lines().next().unwrap_or_default(), remedy),
    }
}

fn judge_lro(on: Result<bool, String>, interface: &str) -> Finding {
    let why = "Large receive offload merges segments in a way that cannot be undone, and drivers refuse XDP with it.";
    match on {
        Ok(false) => Finding::good(LRO, "off"),
        Ok(true) => Finding::bad(
            LRO,
            format!("on for {interface}"),
            format!("{why} Switch it off: ethtool -K {interface} lro off"),
        ),
        Err(error) => Finding::advice(
            LRO,
            error.lines().next().unwrap_or_default(),
            format!("{why} Check that it is off: ethtool -k {interface}"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict::{Advice, Bad, Good};

    #[test]
    fn the_cards_of_a_bond() {
        let bonding = "Bonding Mode: fault-tolerance (active-backup)\nCurrently Active Slave: eth1\n\n\
                    Slave Interface: eth0\nMII Status: up\n\nSlave Interface: eth1\nMII Status: up\n";
        assert_eq!(cards_of_bond(bonding), ["eth0", "eth1"]);
        assert!(cards_of_bond("").is_empty());
    }

    #[test]
    fn lro_is_bad_and_gro_is_advice() {
        assert_eq!(judge_lro(Ok(false), "eth0").verdict(), Good);
        assert_eq!(judge_lro(Ok(true), "eth0").verdict(), Bad);
        assert_eq!(judge_lro(Err("no".into()), "eth0").verdict(), Advice);
        assert_eq!(judge_gro(Ok(false), "br0").verdict(), Good);
        let on = judge_gro(Ok(true), "br0");
        assert_eq!((on.verdict(), on.found()), (Advice, "on for br0"));
    }
}
