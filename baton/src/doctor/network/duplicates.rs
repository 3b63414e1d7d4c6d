//! Checks which machines answer ARP for the cluster addresses on this LAN.

use std::{
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use baton_config::{Config, Node};
use baton_net::{Hop, Link, who_has};
use tokio::task::JoinSet;

use super::neighbors::Way;
use crate::doctor::{finding::Finding, subject::Placed};

/// Checks that only the right nodes answer ARP for the cluster addresses. Clients find a cluster address by ARP, so
/// another machine that answers gets their packets, and does not know their connections.
pub async fn check(placed: &Placed, link: &Link, ways: &[Way]) -> Finding {
    let mut questions = JoinSet::new();
    for address in placed.config.cluster_addresses() {
        let IpAddr::V4(address) = address.ip() else {
            continue;
        };
        let link = link.clone();
        questions
            .spawn_blocking(move || who_has(&link, address, PATIENCE).map(|macs| (address, macs)));
    }
    let answers: Result<Vec<Answer>, _> = questions.join_all().await.into_iter().collect();
    match answers {
        Ok(mut answers) => {
            answers.sort();
            judge(&answers, ways, link, &placed.config)
        }
        Err(error) => Finding::advice(
            NAME,
            error.to_string().lines().next().unwrap_or_default(),
            "Nobody but a connection server, or the switch, may answer ARP for a cluster address, or clients' packets go \
             astray: whether somebody does could not be found out. Run this as root.",
        ),
    }
}

/// A cluster address and the MAC addresses that answer for it.
type Answer = (Ipv4Addr, Vec<[u8; 6]>);

const NAME: &str = "cluster_address";
const PATIENCE: Duration = Duration::from_millis(500);

fn judge(answers: &[Answer], ways: &[Way], link: &Link, config: &Config) -> Finding {
    let (mut rightly, mut wrongly) = (Vec::new(), Vec::new());
    for (address, macs) in answers {
        let answers_for = |node: &Node| {
            let mut known = config.cluster_addresses().into_iter();
            known.any(|known| known.ip() == *address && config.answers_for(node, known))
        };
        for mac in macs {
            let node = ways.iter().find(
                |(_, way)| matches!(way, Ok(Hop::Next(next)) if !next.routed && next.mac == *mac),
            );
            match node {
                Some((node, _)) if answers_for(node) => {
                    rightly.push(format!("ARP for {address} is answered by {}", node.name))
                }
                Some((node, _)) if node.roles.is_cs() => wrongly.push(format!(
                    "ARP for {address} is answered by {}, which is not among its connection_servers",
                    node.name
                )),
                Some((node, _)) => wrongly.push(format!(
                    "ARP for {address} is answered by the data server {}",
                    node.name
                )),
                None => {
                    // A node whose address is on another network may answer here with a MAC address that is not known
                    // from its way, so one unknown answer may be such a node's.
                    let elsewhere: Vec<&str> = (ways.iter())
                        .filter(|(node, way)| answers_for(node) && !is_by(way, link))
                        .map(|(node, _)| node.name.as_str())
                        .collect();
                    match &elsewhere[..] {
                        [_, ..] if macs.len() == 1 => rightly.push(format!(
                            "ARP for {address} is answered by {}, which may be {}, by another card",
                            shown(*mac),
                            elsewhere.join(" or ")
                        )),
                        _ => wrongly.push(format!(
                            "ARP for {address} is answered by {}, which is no node",
                            shown(*mac)
                        )),
                    }
                }
            }
        }
    }
    if wrongly.is_empty() {
        let found = if rightly.is_empty() {
            "nobody else answers ARP for one".into()
        } else {
            rightly.join(", ")
        };
        return Finding::good(NAME, found);
    }
    Finding::bad(
        NAME,
        wrongly.join("\n"),
        "Only a connection server, or the switch if there is one, may answer ARP for a cluster address; \
         whoever else does gets clients' packets and resets their connections. Take the address away from \
         that machine; a data server's node has it on lo and does not answer ARP for it (arp_ignore=1, \
         arp_announce=2), so start the node there.",
    )
}

/// Whether a node is on the network of this interface itself. A way that is not known counts as such.
fn is_by(way: &Result<Hop, baton_net::Error>, link: &Link) -> bool {
    !matches!(way, Ok(Hop::Next(next)) if next.routed || next.link_index != link.index)
}

fn shown(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

#[cfg(test)]
mod tests {
    use baton_net::NextHop;

    use super::*;
    use crate::doctor::{
        finding::Verdict::{Bad, Good},
        subject::tests::{config, link},
    };

    const VIP: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 100);

    /// The ways to cs1, whose MAC address is 02:…:00, to ds1 with :01, and to ds2 with :02.
    fn ways() -> Vec<Way> {
        let to = |last: u8| {
            Hop::Next(NextHop {
                link_index: 2,
                source_mac: [2, 0, 0, 0, 0, 99],
                mac: [2, 0, 0, 0, 0, last],
                source: IpAddr::from([192, 0, 2, 99]),
                routed: false,
            })
        };
        config()
            .nodes
            .into_iter()
            .zip(0..)
            .map(|(node, last)| (node, Ok(to(last))))
            .collect()
    }

    #[test]
    fn a_connection_server_whose_address_is_on_another_network() {
        let judged = |macs: Vec<[u8; 6]>| judge(&[(VIP, macs)], &ways(), &link(3), &config());
        let one = judged(vec![[2, 0, 0, 0, 0, 7]]);
        assert_eq!(one.verdict(), Good);
        assert!(one.found().ends_with("cs1, by another card"), "{one:?}");
        // Two different answers cannot both come from cs1.
        let two = judged(vec![[2, 0, 0, 0, 0, 7], [2, 0, 0, 0, 0, 8]]);
        assert_eq!(two.verdict(), Bad);
    }

    fn judged(macs: &[u8]) -> Finding {
        let macs = macs.iter().map(|last| [2, 0, 0, 0, 0, *last]).collect();
        judge(&[(VIP, macs)], &ways(), &link(2), &config())
    }

    #[test]
    fn nobody_or_a_connection_server() {
        assert_eq!(judged(&[]).verdict(), Good);
        let cs = judged(&[0]);
        assert_eq!(
            (cs.verdict(), cs.found()),
            (Good, "ARP for 192.0.2.100 is answered by cs1")
        );
    }

    #[test]
    fn a_connection_server_of_other_services() {
        let mut config = config();
        let members = config.services[0].nodes.clone();
        config.services[0].connection_servers = Some(members);
        let answer = (VIP, vec![[2, 0, 0, 0, 0, 0]]);
        let finding = judge(&[answer], &ways(), &link(2), &config);
        assert_eq!(finding.verdict(), Bad);
        assert_eq!(
            finding.found(),
            "ARP for 192.0.2.100 is answered by cs1, which is not among its connection_servers"
        );
    }

    #[test]
    fn anybody_else_is_in_the_way() {
        let leak = judged(&[0, 1]);
        assert_eq!(leak.verdict(), Bad);
        assert_eq!(
            leak.found(),
            "ARP for 192.0.2.100 is answered by the data server ds1"
        );
        let stranger = judged(&[7]);
        assert_eq!(stranger.verdict(), Bad);
        assert!(stranger.found().contains("02:00:00:00:00:07"));
    }
}
