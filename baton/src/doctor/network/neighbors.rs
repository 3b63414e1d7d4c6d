//! Checks the ways to the other nodes.

use std::time::Duration;

use baton_config::Node;
use baton_net::{Error, Hop, Netlink};
use tokio::task::JoinSet;

use crate::doctor::{finding::Finding, subject::Placed};

/// A node, and the way to it or the reason why there is none.
pub type Way = (Node, Result<Hop, Error>);

/// Looks up the ways to all other nodes, at the same time.
pub async fn look(placed: &Placed, netlink: &Netlink) -> Vec<Way> {
    let mut tasks = JoinSet::new();
    for node in placed
        .config
        .nodes
        .iter()
        .filter(|node| node.name != placed.me.name)
        .cloned()
    {
        let netlink = netlink.clone();
        tasks.spawn(async move {
            let way = netlink.next_hop(node.address.ip(), PATIENCE).await;
            (node, way)
        });
    }
    let mut ways = tasks.join_all().await;
    ways.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
    ways
}

/// How long a next hop may take to answer ARP. The node itself waits as long.
const PATIENCE: Duration = Duration::from_millis(500);
const NAME: &str = "neighbors";

/// Checks that each node can be reached. Packets go from node to node by MAC address, so every other node has to
/// answer ARP or be behind a router that does.
pub fn judge(ways: &[Way]) -> Finding {
    let why = "Packets go from node to node by MAC address.";
    let without: Vec<&Way> = ways.iter().filter(|(_, way)| way.is_err()).collect();
    if without.is_empty() {
        let routed = |way: &Hop| matches!(way, Hop::Next(next) if next.routed);
        let routers: Vec<&str> = ways
            .iter()
            .filter(|(_, way)| way.as_ref().is_ok_and(routed))
            .map(|(node, _)| node.name.as_str())
            .collect();
        let behind = if routers.is_empty() {
            String::new()
        } else {
            format!(", behind a router: {}", routers.join(", "))
        };
        return Finding::good(
            NAME,
            format!("{} other node(s) reachable{behind}", ways.len()),
        );
    }
    let found: Vec<String> = without
        .iter()
        .map(|(node, way)| {
            let error = way
                .as_ref()
                .err()
                .map(ToString::to_string)
                .unwrap_or_default();
            format!(
                "{}: {}",
                node.name,
                error.lines().next().unwrap_or_default()
            )
        })
        .collect();
    let only_silent = without
        .iter()
        .all(|(_, way)| matches!(way, Err(Error::Unresolved { .. })));
    if only_silent {
        let remedy = format!(
            "{why} See that these machines are up, and on this LAN or behind a router (ip route get)."
        );
        return Finding::advice(NAME, found.join("\n"), remedy);
    }
    let remedy = format!(
        "{why} Add the routes that are missing (ip route get ADDRESS shows), or correct the addresses."
    );
    Finding::bad(NAME, found.join("\n"), remedy)
}

#[cfg(test)]
mod tests {
    use std::{io, net::IpAddr};

    use baton_net::NextHop;

    use super::*;
    use crate::doctor::{
        finding::Verdict::{Advice, Bad, Good},
        subject::tests::config,
    };

    fn ways(to_ds2: Result<Hop, Error>) -> Vec<Way> {
        let [cs1, ds1, ds2] = <[Node; 3]>::try_from(config().nodes).expect("three nodes");
        let lan = Hop::Next(NextHop {
            link_index: 2,
            source_mac: [2, 0, 0, 0, 0, 1],
            mac: [2, 0, 0, 0, 0, 2],
            source: IpAddr::from([192, 0, 2, 2]),
            routed: false,
        });
        vec![(cs1, Ok(Hop::Local)), (ds1, Ok(lan)), (ds2, to_ds2)]
    }

    #[test]
    fn all_reachable() {
        let finding = judge(&ways(Ok(Hop::Local)));
        assert_eq!(
            (finding.verdict(), finding.found()),
            (Good, "3 other node(s) reachable")
        );
    }

    #[test]
    fn who_is_not_is_named() {
        let silent = judge(&ways(Err(Error::Unresolved {
            address: IpAddr::from([192, 0, 2, 12]),
            interface: "eth0".into(),
            waited: PATIENCE,
        })));
        assert_eq!(silent.verdict(), Advice);
        assert!(
            silent.found().starts_with("ds2: 192.0.2.12 on eth0"),
            "{}",
            silent.found()
        );
        let lost = judge(&ways(Err(Error::System {
            doing: "find a route to 192.0.2.12".into(),
            cause: io::Error::from_raw_os_error(libc::ENETUNREACH),
        })));
        assert_eq!(lost.verdict(), Bad);
    }
}
