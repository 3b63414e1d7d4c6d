//! Network address translation on a data server, as container engines set it up. It breaks adopted connections in two
//! ways, unless their packets are exempt from connection tracking and thereby from translation:
//!
//! - A rule of a published port (DNAT) changes the destination of the clients' packets before the kernel looks for
//!   their socket. The clients get no answer.
//! - With any translating chain, the kernel compares the ports of a packet that already has a socket with the
//!   socket's (`nf_nat_ipv4_local_in` in net/netfilter/nf_nat_proto.c). The request socket of an adoption has no port
//!   yet, so the kernel removes it from the packet, and the client gets a RST.

mod iptables;
mod nft;
mod rules;

use std::net::SocketAddrV4;
use std::process::Command;

use serde_json::Value;

use self::rules::{Fate, Packet, Rules};

/// The rules of this host, as the firewall programs print them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// The output of `nft --json list ruleset`; null if there is no such program.
    nft: Value,
    /// The outputs of `iptables-save`, one for each kind of it that exists.
    iptables: Vec<String>,
}

impl Shown {
    /// The rules in these outputs.
    pub fn of(nft: Value, iptables: Vec<String>) -> Self {
        Self { nft, iptables }
    }

    /// Runs the programs. That takes some milliseconds, and more if there are thousands of rules.
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

    /// Whether none of the programs could be run.
    pub fn is_empty(&self) -> bool {
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

    /// How address translation affects the clients of a service that come in by any of these interfaces; `None` if it
    /// does not affect them, or if no program could be run.
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

/// The output of a program; `None` if there is no such program, or if it fails.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    (output.status.success()).then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
