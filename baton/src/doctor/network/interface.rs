//! Checks the interface by which clients and other nodes are reached.

use baton_abi::LCCP_OVERHEAD_BYTES;
use baton_config::Node;
use baton_net::{Adapter, Netlink};

use crate::doctor::{finding::Finding, kernel::proc};

/// Chooses the interfaces to check: the named one, else the node's, else that of the default route. An `Err` holds the
/// finding that says why there is no such interface, or why it cannot be used.
pub async fn choose(
    named: Option<&str>,
    node: Option<&Node>,
    netlink: &Netlink,
) -> Vec<Result<Adapter, Finding>> {
    let names = match names(named, node, netlink).await {
        Ok(names) => names,
        Err(finding) => return vec![Err(finding)],
    };
    let mut chosen = Vec::new();
    for name in names {
        let adapter = netlink.adapter(&name).await;
        chosen.push(adapter.map_err(|error| missing(&error)));
    }
    chosen
}

async fn names(
    named: Option<&str>,
    node: Option<&Node>,
    netlink: &Netlink,
) -> Result<Vec<String>, Finding> {
    match (named, node) {
        (Some(name), _) => Ok(vec![name.to_owned()]),
        (None, Some(node)) => of_node(node, netlink).await,
        (None, None) => default_route(&proc::text("/proc/net/route").unwrap_or_default()).ok_or_else(|| {
            Finding::bad(
                NAME,
                "no interface is named, and there is no default route that would show which one it is",
                "Name the interface that the other nodes are on: baton doctor --interface NAME, or \
                 --config FILE.",
            )
        }).map(|name| vec![name]),
    }
}

async fn of_node(node: &Node, netlink: &Netlink) -> Result<Vec<String>, Finding> {
    if node.interfaces.is_empty() {
        let link = netlink.link_with(node.address.ip()).await;
        return link
            .map(|link| vec![link.name])
            .map_err(|error| missing(&error));
    }
    Ok(node.interfaces.iter().map(ToString::to_string).collect())
}

/// Checks that an interface is an Ethernet interface and up. Nodes reach each other by MAC address, and a program is
/// attached to a NIC.
pub fn judge(adapter: &Adapter) -> Finding {
    let name = &adapter.name;
    if !adapter.ethernet {
        return Finding::bad(
            NAME,
            format!("{name} is not Ethernet"),
            "Nodes reach each other by MAC address: name an Ethernet interface.",
        );
    }
    if !adapter.up {
        return Finding::bad(
            NAME,
            format!("{name} is down"),
            format!("Nothing comes by an interface that is down: ip link set {name} up"),
        );
    }
    if !adapter.carrier {
        return Finding::bad(
            NAME,
            format!("{name} has no carrier"),
            "Nothing comes by an interface without a link: plug the cable in, or bring the other end up.",
        );
    }
    let kind = adapter
        .kind
        .as_deref()
        .map_or(String::new(), |kind| format!(" ({kind})"));
    Finding::good(NAME, format!("{name}{kind} is Ethernet and up"))
}

/// Checks that the MTU is large enough. The connection server puts a client's packet inside its own message, so the
/// largest segment that it allows clients is the MTU less the message's headers and the packet's own.
pub fn judge_mtu(adapter: &Adapter) -> Finding {
    let mtu = adapter.mtu;
    let mss = mtu.saturating_sub(PLAIN_HEADERS + LCCP_OVERHEAD_BYTES);
    let found = format!("{mtu}: allows clients an MSS of {mss}");
    if mtu >= ETHERNET_MTU {
        return Finding::good("mtu", found);
    }
    let remedy = format!(
        "A client's request travels from node to node inside a message, whose headers take \
         {LCCP_OVERHEAD_BYTES} bytes, so clients are told to send smaller segments; the smallest MTU of this \
         node's interfaces counts. Raise the MTU if the network allows it: ip link set {} mtu 1500",
        adapter.name
    );
    if mss >= SMALLEST_MSS {
        Finding::advice("mtu", found, remedy)
    } else {
        Finding::bad("mtu", found, remedy)
    }
}

const NAME: &str = "interface";
const ETHERNET_MTU: u32 = 1500;
/// The bytes of IPv4 and TCP headers without options.
const PLAIN_HEADERS: u32 = 40;
/// The MSS that every host has to accept (RFC 9293, section 3.7.1). Clients may send such segments whatever they are
/// told.
const SMALLEST_MSS: u32 = 536;

fn missing(error: &baton_net::Error) -> Finding {
    // The error has the form "what\n  help: what to do".
    let text = error.to_string();
    let (found, help) = text
        .split_once("\n  help: ")
        .unwrap_or((&text, "name an interface that `ip link` shows"));
    Finding::bad(
        NAME,
        found,
        format!(
            "Clients and other nodes are reached by it: {}.",
            help.trim()
        ),
    )
}

/// The interface of the default route with the smallest metric, from the text of /proc/net/route.
fn default_route(table: &str) -> Option<String> {
    table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [name, "00000000", _, _, _, _, metric, "00000000", ..] = fields[..] else {
                return None;
            };
            Some((metric.parse::<u32>().ok()?, name.to_owned()))
        })
        .min()
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::{
        finding::Verdict::{Advice, Bad, Good},
        subject::tests::adapter,
    };

    #[test]
    fn ethernet_and_up() {
        let verdict = |(ethernet, up, carrier)| {
            judge(&Adapter {
                ethernet,
                up,
                carrier,
                ..adapter(0)
            })
            .verdict()
        };
        assert_eq!(verdict((true, true, true)), Good);
        for bad in [
            (false, true, true),
            (true, false, true),
            (true, true, false),
        ] {
            assert_eq!(verdict(bad), Bad, "{bad:?}");
        }
    }

    #[test]
    fn mtu_and_mss() {
        let full = judge_mtu(&adapter(0));
        assert_eq!(full.found(), "1500: allows clients an MSS of 1360");
        for (mtu, verdict) in [
            (1500, Good),
            (9000, Good),
            (1400, Advice),
            (576, Bad),
            (0, Bad),
        ] {
            let adapter = Adapter { mtu, ..adapter(0) };
            assert_eq!(judge_mtu(&adapter).verdict(), verdict, "{mtu}");
        }
    }

    #[test]
    fn the_default_routes_interface() {
        let table = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                     eth1\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
                     eth0\t00000000\t010200C0\t0003\t0\t0\t50\t00000000\t0\t0\t0\n\
                     eth2\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
        assert_eq!(default_route(table).as_deref(), Some("eth0"));
        assert_eq!(default_route(""), None);
        assert_eq!(default_route("Iface\nlies"), None);
    }
}
