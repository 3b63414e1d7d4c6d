//! Address translations that lead the clients' packets away from the sockets that adopt their connections, as
//! those do that Docker makes for a published port. The packets of an adopted connection come in under the
//! cluster address, and the kernel translates it before it looks for a socket. The client waits in vain then.

mod iptables;
mod nft;
mod rules;

use std::net::IpAddr;
use std::process::Command;

use serde_json::Value;

use self::rules::{Fate, Packet, Rules};
use super::{finding::Finding, servers::Place};

const NAME: &str = "dnat";

/// What programs say of this host's rules.
struct Shown {
    /// `nft --json list ruleset`; null if there is no such program.
    nft: Value,
    /// `iptables-save` of either kind; none of those that are missing.
    iptables: Vec<String>,
}

/// `services`: those of this node; `interface`: by which the clients' packets come in; `own`: this node's address.
pub fn check(services: &[Place], interface: Option<&str>, own: IpAddr) -> Finding {
    judge(services, interface, own, &Shown::now())
}

impl Shown {
    fn now() -> Self {
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
}

/// `None` if there is no such program, or it fails.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    (output.status.success()).then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn judge(services: &[Place], interface: Option<&str>, own: IpAddr, shown: &Shown) -> Finding {
    if shown.is_empty() {
        return Finding::advice(
            NAME,
            "neither nft nor iptables-save could be asked",
            "Whether an address translation (DNAT) leads the clients' packets away could not be found out: \
             install nftables, run this as root, or look yourself for rules about the services' ports.",
        );
    }
    let mut found = Vec::new();
    let mut surely = false;
    let mut port = None;
    for (name, at) in services {
        let IpAddr::V4(address) = at.ip() else {
            continue;
        };
        let packet = Packet {
            address,
            port: at.port(),
            interface,
        };
        let rules = shown.rules(&packet);
        if rules.iter().any(Rules::untracks) {
            continue;
        }
        for fate in rules.iter().map(Rules::fate) {
            let Fate::Changed {
                surely: this,
                to,
                chain,
            } = fate
            else {
                continue;
            };
            let how = if this { "are" } else { "may be" };
            found.push(format!(
                "packets for {name} ({at}) {how} led to {to} by the chain \"{chain}\""
            ));
            surely |= this;
            port.get_or_insert(at.port());
        }
    }
    let Some(port) = port else {
        return Finding::good(NAME, "no address translation takes the services' packets");
    };
    let remedy = format!(
        "Clients whose connections this node adopts would wait in vain, because the translation comes before \
         the socket. If the rule is of a container's published port, publish it at this node's own address only \
         (docker run -p {own}:{port}:{port}) or not at all; docs/containers.md shows how baton reaches the \
         server then, and how to exempt the service from translation instead."
    );
    if surely {
        Finding::bad(NAME, found.join("\n"), remedy)
    } else {
        Finding::advice(NAME, found.join("\n"), remedy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict::{Advice, Bad, Good};

    fn web() -> Vec<Place> {
        vec![("web".into(), "192.0.2.100:80".parse().expect("an address"))]
    }

    fn judged(iptables: &[&str]) -> Finding {
        let shown = Shown {
            nft: Value::Null,
            iptables: iptables.iter().map(|text| (*text).to_owned()).collect(),
        };
        judge(&web(), Some("eth0"), [192, 0, 2, 11].into(), &shown)
    }

    const DNAT: &str = "*nat\n-A PREROUTING -p tcp -m tcp --dport 80 -j DNAT --to-destination 172.17.0.2:80\n";

    #[test]
    fn a_translation_is_bad_and_has_a_remedy() {
        let bad = judged(&[DNAT]);
        assert_eq!(bad.verdict(), Bad);
        assert_eq!(
            bad.found(),
            "packets for web (192.0.2.100:80) are led to 172.17.0.2:80 by the chain \"nat PREROUTING\""
        );
        let remedy = bad.remedy().expect("what is bad has a remedy");
        assert!(remedy.contains("-p 192.0.2.11:80:80"), "{remedy}");
    }

    #[test]
    fn what_is_not_sure_is_advice() {
        let limited = DNAT.replace("-p tcp", "-s 198.51.100.0/24 -p tcp");
        assert_eq!(judged(&[&limited]).verdict(), Advice);
        assert_eq!(judged(&[]).verdict(), Advice, "nobody could be asked");
    }

    #[test]
    fn other_ports_and_untracked_packets_are_good() {
        assert_eq!(judged(&[""]).verdict(), Good);
        assert_eq!(judged(&[&DNAT.replace("dport 80", "dport 8080")]).verdict(), Good);
        let untracked = "*raw\n-A PREROUTING -d 192.0.2.100/32 -j CT --notrack\n";
        // It does not matter which program shows which rule.
        assert_eq!(judged(&[DNAT, untracked]).verdict(), Good);
    }
}
