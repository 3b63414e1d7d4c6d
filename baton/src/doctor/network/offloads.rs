//! Checks offloads that change packets before a program sees them.

use baton_net::{Adapter, offload::offloads};

use crate::doctor::{
    finding::{Finding, Verdict},
    kernel::proc,
};

/// Checks that LRO is off. A NIC that merges segments (LRO) makes packets that can neither be forwarded nor split
/// again.
///
/// A bond itself receives nothing: its LRO setting only says what it would allow its cards, so its cards are checked.
pub async fn check(adapter: &Adapter) -> Finding {
    let told = proc::text(&format!("/proc/net/bonding/{}", adapter.name));
    let mut cards = cards_of_bond(&told.unwrap_or_default());
    if cards.is_empty() {
        cards.push(adapter.name.clone());
    }
    for card in &cards {
        let on = offloads(card)
            .await
            .map(|offloads| offloads.large_receive());
        let finding = judge(on.map_err(|error| error.to_string()), card);
        if finding.verdict() != Verdict::Good {
            return finding;
        }
    }
    Finding::good(NAME, "off")
}

/// The names of a bond's cards, from what the kernel says of the bond.
fn cards_of_bond(told: &str) -> Vec<String> {
    let lines = told.lines();
    lines
        .filter_map(|line| Some(line.strip_prefix("Slave Interface: ")?.to_owned()))
        .collect()
}

/// Checks that GRO is off. Where the program runs in generic mode, the kernel may have merged segments (GRO) before
/// the program sees them.
pub async fn check_merging(adapter: &Adapter) -> Finding {
    let on = offloads(&adapter.name)
        .await
        .map(|offloads| offloads.generic_receive());
    judge_merging(on.map_err(|error| error.to_string()), &adapter.name)
}

fn judge_merging(on: Result<bool, String>, interface: &str) -> Finding {
    const NAME: &str = "gro";
    let remedy = format!(
        "In generic mode segments that the kernel has merged come to the program as one packet, longer than the \
         MTU: out of another interface it cannot be sent at all (counter cs_merged_lost), and a request in it \
         has to be sent again (cs_too_big). Switch it off here and on the interfaces below a bridge or bond: \
         ethtool -K {interface} gro off"
    );
    match on {
        Ok(false) => Finding::good(NAME, "off"),
        Ok(true) => Finding::advice(NAME, format!("on at {interface}"), remedy),
        Err(error) => Finding::advice(NAME, error.lines().next().unwrap_or_default(), remedy),
    }
}

const NAME: &str = "lro";

fn judge(on: Result<bool, String>, interface: &str) -> Finding {
    let why = "Large receive offload merges segments in a way that cannot be undone, and drivers refuse XDP with it:";
    match on {
        Ok(false) => Finding::good(NAME, "off"),
        Ok(true) => Finding::bad(
            NAME,
            format!("on at {interface}"),
            format!("{why} ethtool -K {interface} lro off"),
        ),
        Err(error) => Finding::advice(
            NAME,
            error.lines().next().unwrap_or_default(),
            format!("{why} see that it is off: ethtool -k {interface}"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict::{Advice, Bad, Good};

    #[test]
    fn the_cards_of_a_bond() {
        let told = "Bonding Mode: fault-tolerance (active-backup)\nCurrently Active Slave: eth1\n\n\
                    Slave Interface: eth0\nMII Status: up\n\nSlave Interface: eth1\nMII Status: up\n";
        assert_eq!(cards_of_bond(told), ["eth0", "eth1"]);
        assert!(cards_of_bond("").is_empty());
    }

    #[test]
    fn must_be_off() {
        assert_eq!(judge(Ok(false), "eth0").verdict(), Good);
        assert_eq!(judge(Ok(true), "eth0").verdict(), Bad);
        assert_eq!(judge(Err("no".into()), "eth0").verdict(), Advice);
        assert_eq!(judge_merging(Ok(false), "br0").verdict(), Good);
        let on = judge_merging(Ok(true), "br0");
        assert_eq!((on.verdict(), on.found()), (Advice, "on at br0"));
    }
}
