//! The ways to other nodes. They are looked up again and again, because MAC addresses change.

use std::{collections::HashMap, net::Ipv4Addr, time::Duration};

use baton_net::{Hop, Netlink};
use tokio::sync::{mpsc, watch};
use tracing::{info, warn};

/// The way to one node, by the node's address. `None` means that it cannot be reached.
pub type Found = (Ipv4Addr, Option<Hop>);

/// The time between two looks at all nodes if all can be reached.
const INTERVAL: Duration = Duration::from_secs(2);
/// The time between two looks while some nodes cannot be reached, because they may be about to start.
const SOON: Duration = Duration::from_millis(200);
/// How long a next hop may take to answer ARP.
pub const PATIENCE: Duration = Duration::from_millis(500);

/// Looks up the ways to the nodes in `wanted` again and again, and reports each change until the receiver is dropped.
pub fn follow(
    netlink: Netlink,
    wanted: watch::Receiver<Vec<Ipv4Addr>>,
    report: mpsc::Sender<Found>,
) {
    tokio::spawn(async move {
        let mut known: HashMap<Ipv4Addr, Option<Hop>> = HashMap::new();
        loop {
            let addresses = wanted.borrow().clone();
            known.retain(|address, _| addresses.contains(address));
            for (address, hop) in look(&netlink, &addresses).await {
                let before = known.insert(address, hop.clone());
                if before.as_ref() == Some(&hop) {
                    continue;
                }
                if report.send((address, hop)).await.is_err() {
                    return;
                }
            }
            let all_found = known.values().all(Option::is_some);
            tokio::time::sleep(if all_found { INTERVAL } else { SOON }).await;
        }
    });
}

/// Looks up the ways to all these nodes once, at the same time.
pub async fn look(netlink: &Netlink, addresses: &[Ipv4Addr]) -> Vec<Found> {
    let mut tasks = tokio::task::JoinSet::new();
    for address in addresses.iter().copied() {
        let netlink = netlink.clone();
        tasks.spawn(async move { (address, netlink.next_hop(address.into(), PATIENCE).await) });
    }
    let mut found = Vec::new();
    while let Some(result) = tasks.join_next().await {
        // A task that panicked has no result; the next look asks again.
        let Ok((address, hop)) = result else { continue };
        found.push((
            address,
            hop.map_err(|error| tracing::debug!("{error}")).ok(),
        ));
    }
    found
}

/// Logs a change of the way to the node `name`, for people.
pub fn log_change(name: &str, found: &Found) {
    match &found.1 {
        Some(Hop::Local) => {}
        Some(Hop::Next(hop)) if hop.routed => info!(node = name, "is behind a router"),
        Some(Hop::Next(_)) => info!(node = name, "is on this LAN"),
        None => {
            warn!(node = name, address = %found.0, "cannot be reached: no route, or nobody answers ARP for it")
        }
    }
}
