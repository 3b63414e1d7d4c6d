//! Checks the way of responses: clients get them from the data server itself, by that server's own routes.

use std::net::Ipv4Addr;

use baton_net::{Adapter, Error, Netlink};

use crate::doctor::{finding::Finding, subject::Placed};

/// An address that stands for clients anywhere. It is in no real network (RFC 5737), so only a default route leads
/// there.
const ANYWHERE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);

/// The way from a cluster address to clients anywhere.
struct Way {
    cluster: Ipv4Addr,
    leaves_by: LeavesBy,
}

/// The interface by which responses leave.
enum LeavesBy {
    Interface {
        index: u32,
        name: String,
    },
    /// There is no default route, so only clients in networks to which this host has routes get responses.
    NoDefaultRoute,
    Unknown(String),
}

/// Checks that responses leave by an interface of this node. The program there follows them, and a connection whose
/// responses it has not seen from the first byte on can neither be handed over nor resumed.
pub async fn check(placed: &Placed, adapters: &[Adapter], netlink: &Netlink) -> Finding {
    let services: Vec<_> = placed.config.services_of(&placed.me.name).collect();
    let mut addresses: Vec<Ipv4Addr> = (services.iter())
        .filter_map(|service| service.address.ipv4())
        .collect();
    addresses.sort();
    addresses.dedup();
    let mut ways = Vec::new();
    for cluster in addresses {
        let leaves_by = look(cluster, netlink).await;
        ways.push(Way { cluster, leaves_by });
    }
    let is_followed = (services.iter()).any(|service| service.owner_routes() || service.resumes());
    judge(&ways, adapters, is_followed)
}

async fn look(cluster: Ipv4Addr, netlink: &Netlink) -> LeavesBy {
    let index = match netlink.interface_from(cluster, ANYWHERE).await {
        Ok(Some(index)) => index,
        Ok(None) => return LeavesBy::Unknown(format!("{ANYWHERE} is an address of this host")),
        Err(error) if has_no_route(&error) => return LeavesBy::NoDefaultRoute,
        Err(error) => return LeavesBy::Unknown(error.to_string()),
    };
    match netlink.name_of_link(index).await {
        Ok(Some(name)) => LeavesBy::Interface { index, name },
        // An interface without a MAC address, such as a tunnel, is not one of the node's interfaces.
        Ok(None) | Err(_) => LeavesBy::Interface {
            index,
            name: format!("the interface with index {index}"),
        },
    }
}

fn has_no_route(error: &Error) -> bool {
    matches!(error.errno(), Some(libc::ENETUNREACH | libc::EHOSTUNREACH))
}

const NAME: &str = "response_route";

fn judge(ways: &[Way], adapters: &[Adapter], is_followed: bool) -> Finding {
    let is_listed = |index| adapters.iter().any(|adapter| adapter.index == index);
    let (mut good, mut elsewhere, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    for Way { cluster, leaves_by } in ways {
        match leaves_by {
            LeavesBy::Interface { index, name } if is_listed(*index) => {
                good.push(format!("from {cluster} by {name}"));
            }
            LeavesBy::Interface { name, .. } => {
                elsewhere.push((format!("from {cluster} by {name}"), name.as_str()));
            }
            LeavesBy::NoDefaultRoute => {
                good.push(format!(
                    "from {cluster} to known networks only: no default route"
                ));
            }
            LeavesBy::Unknown(error) => {
                unknown.push(error.lines().next().unwrap_or_default().to_owned());
            }
        }
    }
    if let Some((_, name)) = elsewhere.first() {
        let listed: Vec<&str> = (adapters.iter())
            .map(|adapter| adapter.name.as_str())
            .collect();
        let found: Vec<&str> = elsewhere.iter().map(|(way, _)| way.as_str()).collect();
        let found = format!(
            "responses leave {}, which is not among this node's: {}",
            found.join(", "),
            listed.join(", ")
        );
        let remedy = format!(
            "Only the programs at a node's interfaces see how its responses begin and end; connections whose \
             responses pass elsewhere stay with this data server, and are not resumed: name {name} among this \
             node's interfaces (interface = [...]), or route responses by one of them."
        );
        return if is_followed {
            Finding::bad(NAME, found, remedy)
        } else {
            Finding::advice(NAME, found, remedy)
        };
    }
    if !unknown.is_empty() {
        return Finding::advice(
            NAME,
            unknown.join("\n"),
            "By which interface responses leave cannot be seen here: look with ip route get CLIENT from \
             CLUSTER_ADDRESS, and name that interface among this node's.",
        );
    }
    if good.is_empty() {
        return Finding::good(NAME, "this node answers for no service");
    }
    Finding::good(NAME, format!("responses leave {}", good.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::{
        finding::Verdict::{Advice, Bad, Good},
        subject::tests::adapter,
    };

    fn way(leaves_by: LeavesBy) -> Way {
        let cluster = Ipv4Addr::new(192, 0, 2, 100);
        Way { cluster, leaves_by }
    }

    fn by(index: u32) -> Way {
        way(LeavesBy::Interface {
            index,
            name: format!("eth{index}"),
        })
    }

    #[test]
    fn by_one_of_several_interfaces() {
        let finding = judge(&[by(1), by(0)], &[adapter(0), adapter(1)], true);
        assert_eq!(finding.verdict(), Good);
        assert_eq!(
            finding.found(),
            "responses leave from 192.0.2.100 by eth1, from 192.0.2.100 by eth0"
        );
    }

    #[test]
    fn by_an_interface_that_is_not_listed() {
        let ways = [by(0), by(2)];
        let finding = judge(&ways, &[adapter(0), adapter(1)], true);
        assert_eq!(finding.verdict(), Bad);
        assert_eq!(
            finding.found(),
            "responses leave from 192.0.2.100 by eth2, which is not among this node's: eth0, eth1"
        );
        let remedy = finding.remedy().unwrap_or_default();
        assert!(remedy.contains("name eth2 among"), "{remedy}");
        // Responses of services whose connections stay with their data server are not followed.
        assert_eq!(judge(&ways, &[adapter(0)], false).verdict(), Advice);
    }

    #[test]
    fn clients_of_the_lan_need_no_default_route() {
        let finding = judge(&[way(LeavesBy::NoDefaultRoute)], &[adapter(0)], true);
        assert_eq!(finding.verdict(), Good);
        assert!(finding.found().ends_with("no default route"), "{finding}");
    }

    #[test]
    fn what_cannot_be_seen_is_said() {
        let unknown = LeavesBy::Unknown("not permitted\nor so".into());
        let finding = judge(&[way(unknown), by(0)], &[adapter(0)], true);
        assert_eq!(
            (finding.verdict(), finding.found()),
            (Advice, "not permitted")
        );
        assert_eq!(judge(&[], &[adapter(0)], true).verdict(), Good);
    }
}
