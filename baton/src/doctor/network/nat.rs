//! Checks for network address translation on a data server, which breaks adopted connections.

use std::net::{IpAddr, SocketAddr, SocketAddrV4};

use baton_net::address_translation::Shown;

use crate::doctor::{finding::Finding, servers::NamedService};

const NAME: &str = "nat";

/// Checks whether this host translates addresses of the services' packets. `services` are those of this node.
/// `interfaces` are those by which clients' packets may come in; the list is empty if they are not known.
pub fn check(services: &[NamedService], interfaces: &[String]) -> Finding {
    judge(services, interfaces, &Shown::now())
}

fn judge(services: &[NamedService], interfaces: &[String], shown: &Shown) -> Finding {
    if shown.is_empty() {
        return Finding::advice(
            NAME,
            "neither nft nor iptables-save could be asked",
            "Whether this host translates addresses (NAT), which spoils adopted connections, could not be found \
             out: install nftables, run this as root, or look yourself.",
        );
    }
    let spoiled: Vec<(String, SocketAddrV4)> = services
        .iter()
        .filter_map(|(name, at)| match at {
            SocketAddr::V4(at) => {
                let what = shown.spoils(*at, interfaces)?;
                Some((format!("{name} ({at}): {what}"), *at))
            }
            SocketAddr::V6(_) => None,
        })
        .collect();
    if spoiled.is_empty() {
        return Finding::good(
            NAME,
            "no address translation concerns the services' packets",
        );
    }
    let found: Vec<&str> = spoiled.iter().map(|(what, _)| what.as_str()).collect();
    let remedy = format!(
        "Exempt packets to these services from connection tracking, and so from translation, for as long as this is a \
         data server (docs/containers.md says why): nft '{}'",
        exemption(spoiled.iter().map(|(_, at)| *at))
    );
    Finding::bad(NAME, found.join("\n"), remedy)
}

/// The commands for nft(8) that exempt the packets to the services, both those that come in from clients and those of
/// this node's own health checks.
fn exemption(services: impl Iterator<Item = SocketAddrV4>) -> String {
    let mut commands = vec!["add table ip untracked".to_owned()];
    for (chain, hook) in [("incoming", "prerouting"), ("outgoing", "output")] {
        commands.push(format!(
            "add chain ip untracked {chain} {{ type filter hook {hook} priority raw; }}"
        ));
    }
    for service in services {
        let (address, port) = (IpAddr::V4(*service.ip()), service.port());
        for chain in ["incoming", "outgoing"] {
            commands.push(format!(
                "add rule ip untracked {chain} ip daddr {address} tcp dport {port} notrack"
            ));
        }
    }
    commands.join("; ")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::doctor::finding::Verdict::{Advice, Bad, Good};

    fn judged(iptables: &[&str]) -> Finding {
        let shown = Shown::of(
            Value::Null,
            iptables.iter().map(|text| (*text).to_owned()).collect(),
        );
        let web: Vec<NamedService> =
            vec![("web".into(), "192.0.2.100:80".parse().expect("an address"))];
        judge(&web, &["eth0".into()], &shown)
    }

    const DNAT: &str =
        "*nat\n-A PREROUTING -p tcp -m tcp --dport 80 -j DNAT --to-destination 172.17.0.2:80\n";

    #[test]
    fn a_published_port_is_bad_and_has_a_remedy() {
        let bad = judged(&[DNAT]);
        assert_eq!(bad.verdict(), Bad);
        assert_eq!(
            bad.found(),
            "web (192.0.2.100:80): the chain \"nat PREROUTING\" leads the clients' packets to 172.17.0.2:80"
        );
        let remedy = bad.remedy().expect("what is bad has a remedy");
        let rule = "add rule ip untracked incoming ip daddr 192.0.2.100 tcp dport 80 notrack";
        assert!(remedy.contains(rule), "{remedy}");
        let limited = judged(&[&DNAT.replace("-p tcp", "-s 198.51.100.0/24 -p tcp")]);
        assert!(limited.found().contains("may lead"), "{}", limited.found());
    }

    #[test]
    fn any_interface_of_the_node_counts() {
        let shown = Shown::of(Value::Null, vec![DNAT.replace("-p tcp", "-i eth1 -p tcp")]);
        let at: SocketAddrV4 = "192.0.2.100:80".parse().expect("an address");
        let said = |interfaces: &[&str]| {
            let names: Vec<String> = interfaces.iter().map(|name| (*name).into()).collect();
            shown.spoils(at, &names).unwrap_or_default()
        };
        assert!(!said(&["eth0"]).contains("leads"), "{}", said(&["eth0"]));
        assert!(
            said(&["eth1"]).contains("leads the clients' packets"),
            "{}",
            said(&["eth1"])
        );
    }

    #[test]
    fn any_translation_is_bad() {
        let masquerade = "*nat\n-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE\n";
        let bad = judged(&[masquerade]);
        assert_eq!(bad.verdict(), Bad);
        assert!(
            bad.found().contains("iptables' table nat"),
            "{}",
            bad.found()
        );
    }

    #[test]
    fn without_translation_or_tracking_it_is_good() {
        assert_eq!(judged(&[""]).verdict(), Good);
        let untracked = "*raw\n-A PREROUTING -d 192.0.2.100/32 -j CT --notrack\n";
        // It does not matter which of the two programs shows which rule.
        assert_eq!(judged(&[DNAT, untracked]).verdict(), Good);
        let other = "*raw\n-A PREROUTING -d 192.0.2.101/32 -j CT --notrack\n";
        assert_eq!(judged(&[DNAT, other]).verdict(), Bad);
    }

    #[test]
    fn who_cannot_be_asked_is_said() {
        assert_eq!(judged(&[]).verdict(), Advice);
    }
}
