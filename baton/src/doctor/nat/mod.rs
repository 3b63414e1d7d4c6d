//! Network address translation on a data server, which container engines set up. It spoils adopted connections in
//! two ways, unless their packets are exempt from connection tracking, and with that from translation:
//!
//! - A rule of a published port (DNAT) changes the destination of the clients' packets before the kernel looks for
//!   their socket. The clients wait in vain.
//! - With any translating chain, the kernel compares the ports of a packet that has a socket already with the
//!   socket's (`nf_nat_ipv4_local_in` in net/netfilter/nf_nat_proto.c). The request socket of an adoption has no
//!   port yet, so the kernel takes it away from the packet, and the client gets a RST.

mod iptables;
mod nft;
mod rules;

use std::net::{IpAddr, SocketAddr, SocketAddrV4};
use std::process::Command;

use serde_json::Value;

use self::rules::{Fate, Packet, Rules};
use super::{finding::Finding, servers::Place};

const NAME: &str = "nat";

/// `services`: those of this node; `interfaces`: by which the clients' packets may come in; none if that is not known.
pub fn check(services: &[Place], interfaces: &[String]) -> Finding {
    judge(services, interfaces, &Shown::now())
}

/// What programs say of this host's rules.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// `nft --json list ruleset`; null if there is no such program.
    nft: Value,
    /// `iptables-save` of either kind; none of those that are missing.
    iptables: Vec<String>,
}

impl Shown {
    /// Asks the programs, which takes some milliseconds, and more where there are thousands of rules.
    pub fn now() -> Self {
        let nft = output("nft", &["--json", "list", "ruleset"]);
        let kinds = ["iptables-nft-save", "iptables-legacy-save"];
        let mut iptables: Vec<String> = kinds.iter().filter_map(|kind| output(kind, &[])).collect();
        if iptables.is_empty() {
            iptables.extend(output("iptables-save", &[]));
        }
        Self {
            nft: nft
                .and_then(|text| serde_json::from_str(&text).ok())
                .unwrap_or_default(),
            iptables,
        }
    }

    fn is_empty(&self) -> bool {
        self.nft.is_null() && self.iptables.is_empty()
    }

    fn rules(&self, packet: &Packet<'_>) -> Vec<Rules> {
        let of_iptables = self.iptables.iter();
        let mut all: Vec<Rules> = of_iptables
            .map(|text| iptables::read(text, packet))
            .collect();
        all.push(nft::read(&self.nft, packet, self.iptables.is_empty()));
        all
    }

    /// What address translation does to the clients of a service that come in by any of these interfaces; `None` if
    /// nothing, or if nobody could be asked.
    pub fn spoils(&self, service: SocketAddrV4, interfaces: &[String]) -> Option<String> {
        if interfaces.is_empty() {
            return self.spoils_by(service, None);
        }
        (interfaces.iter()).find_map(|interface| self.spoils_by(service, Some(interface)))
    }

    fn spoils_by(&self, service: SocketAddrV4, interface: Option<&str>) -> Option<String> {
        let rules = self.rules(&Packet {
            address: *service.ip(),
            port: service.port(),
            interface,
        });
        if rules.iter().any(Rules::untracks) {
            return None;
        }
        let changed = rules.iter().map(Rules::fate).find_map(|fate| match fate {
            Fate::Kept => None,
            Fate::Changed { surely, to, chain } => {
                let how = if surely { "leads" } else { "may lead" };
                Some(format!(
                    "the chain \"{chain}\" {how} the clients' packets to {to}"
                ))
            }
        });
        changed.or_else(|| {
            let nat = rules.iter().find_map(|rules| rules.nat.as_ref())?;
            Some(format!(
                "this host translates addresses ({nat}), and the kernel resets adopted connections then"
            ))
        })
    }
}

/// `None` if there is no such program, or it fails.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    (output.status.success()).then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn judge(services: &[Place], interfaces: &[String], shown: &Shown) -> Finding {
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

/// What nft(8) is to be told. The packets that come in from clients, and those of this node's own health checks.
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
    use super::*;
    use crate::doctor::finding::Verdict::{Advice, Bad, Good};

    fn judged(iptables: &[&str]) -> Finding {
        let shown = Shown {
            nft: Value::Null,
            iptables: iptables.iter().map(|text| (*text).to_owned()).collect(),
        };
        let web: Vec<Place> = vec![("web".into(), "192.0.2.100:80".parse().expect("an address"))];
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
        let shown = Shown {
            nft: Value::Null,
            iptables: vec![DNAT.replace("-p tcp", "-i eth1 -p tcp")],
        };
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
        // It does not matter which program shows which rule.
        assert_eq!(judged(&[DNAT, untracked]).verdict(), Good);
        let other = "*raw\n-A PREROUTING -d 192.0.2.101/32 -j CT --notrack\n";
        assert_eq!(judged(&[DNAT, other]).verdict(), Bad);
    }

    #[test]
    fn who_cannot_be_asked_is_said() {
        assert_eq!(judged(&[]).verdict(), Advice);
    }
}
