//! Faults of the packets of a link: they are lost, doubled or late.
//!
//! Rules of nftables do this at the host's port on the bridge, at ingress and at egress (the latter needs
//! `CONFIG_NETFILTER_EGRESS`, Linux 5.16), so that packets that XDP sends pass them too. The kernel itself doubles
//! packets (`dup`, Linux 4.6; at egress 5.17). Packets that are to be late go to a process ([`super::late`]),
//! because this needs no kernel module.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Deserialize;

use super::direction::Direction;
use super::late::{self, LATE};
use crate::error::Result;
use crate::file::{BRIDGE, Host, Lab, Loss};
use crate::netns::Namespace;
use crate::running::Running;
use crate::state::{Lock, State};
use crate::{tool, topology};

const TABLE: &str = "netdev baton_fault";
/// The mark of a packet that is to be doubled where it leaves the bridge.
const TWICE: u32 = 0x00ba_702d;
/// The mark of a packet that has been doubled.
const DOUBLED: u32 = 0x00ba_702e;

/// What happens to the packets of a link. Each [`Loss`] is a part, 0 to 1, of the packets that `only` and
/// `direction` select. The default is a good cable.
#[derive(Clone, Debug, Default, PartialEq, clap::Args)]
pub struct Packets {
    /// Share of the packets that never arrive, 0 to 1
    #[arg(long, default_value = "0", value_parser = part)]
    pub lose: Loss,
    /// Share of the packets that arrive twice, 0 to 1
    #[arg(long, default_value = "0", value_parser = part)]
    pub twice: Loss,
    /// Share of the packets that arrive late, 0 to 1; unless it is 1, other packets overtake them
    #[arg(long, default_value = "0", value_parser = part)]
    pub late: Loss,
    /// Delay of packets that arrive late, in milliseconds
    #[arg(long, default_value = "5", value_parser = milliseconds)]
    pub by: Duration,
    /// Which packets
    #[arg(long, value_enum, default_value_t)]
    pub only: Only,
    /// Which direction, as seen from the host
    #[arg(long, value_enum, default_value_t)]
    pub direction: Direction,
}

/// The kind of packets that a fault is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Only {
    /// All packets
    #[default]
    All,
    /// Messages between nodes
    Lccp,
    /// TCP packets of clients and servers that are not inside a message
    Tcp,
}

impl Running {
    /// Sets what happens to the packets of a host's link, and replaces what was set before.
    pub(super) fn disturb(&self, host: &str, packets: &Packets) -> Result<()> {
        let _lock = Lock::lab(self.lab().name(), &mut |_| {})?;
        let mut state = self.state()?;
        let at = self.file_host(host)?;
        let bridge = self.namespace(&state, BRIDGE)?.clone();
        // The old rules go first. A queue must exist before a rule names it, and go only after the rule.
        set(self.lab(), &bridge, host, &Packets::default(), ["", ""])?;
        late::end(&mut state, &bridge, host)?;
        if *packets == Packets::default() {
            return state.save();
        }
        let mut hosts = self.lab().hosts().iter();
        let place = hosts.position(|one| one.name.as_str() == host).unwrap_or(0);
        let queues = if packets.late == Loss::default() {
            Default::default()
        } else {
            self.queues(&mut state, &bridge, at, place, packets)?
        };
        let [from, to] = &queues;
        set(self.lab(), &bridge, host, packets, [from, to])?;
        if !state.single_packets {
            topology::single_packets(&bridge, &self.namespaces(&state)?)?;
            state.single_packets = true;
        }
        state.save()
    }

    /// Starts the processes that delay packets. Returns the devices that lead to them: for packets from the
    /// host, and to it.
    fn queues(
        &self,
        state: &mut State,
        bridge: &Namespace,
        host: &Host,
        place: usize,
        packets: &Packets,
    ) -> Result<[String; 2]> {
        let mut queues = [String::new(), String::new()];
        for (queue, way) in queues.iter_mut().zip([Direction::From, Direction::To]) {
            if packets.direction.has(way) {
                *queue = format!(
                    "late.{place}.{}",
                    if way == Direction::From { "f" } else { "t" }
                );
                late::begin(state, self.lab(), bridge, host, queue, way, packets.by)?;
            }
        }
        Ok(queues)
    }
}

fn part(text: &str) -> Result<Loss, String> {
    let fraction: f64 = text
        .parse()
        .map_err(|_| format!("{text:?} is no number; write 0.01 for one in a hundred"))?;
    Loss::new(fraction)
}

fn milliseconds(text: &str) -> Result<Duration, std::num::ParseIntError> {
    text.parse().map(Duration::from_millis)
}

impl Only {
    fn matches(self) -> &'static str {
        match self {
            Only::All => "",
            Only::Lccp => "ip protocol 253 ",
            Only::Tcp => "ip protocol tcp ",
        }
    }
}

/// Has each packet from and to a host be lost with this probability, as its lab file says.
pub(crate) fn lose(lab: &Lab, bridge: &Namespace, host: &Host) -> Result<()> {
    let packets = Packets {
        lose: host.link.loss,
        ..Packets::default()
    };
    set(lab, bridge, host.name.as_str(), &packets, ["", ""])
}

fn set(
    lab: &Lab,
    bridge: &Namespace,
    port: &str,
    packets: &Packets,
    queues: [&str; 2],
) -> Result<()> {
    let ports: Vec<&str> = (lab.hosts().iter())
        .map(|host| host.name.as_str())
        .collect();
    let mut nft = tool::tool("nsenter", [""; 0])?;
    nft.arg(format!("--net={}", bridge.path().display()))
        .args(["--", "nft", "-f", "-"]);
    tool::finish(nft, Some(&script(port, &ports, packets, queues))).map(drop)
}

/// The nftables script that flushes and fills the chains of one port. `queues` are the devices that lead to
/// the processes that delay packets, from the host and to it.
///
/// A packet from the host is doubled where it leaves the bridge, because only there its port is known.
fn script(port: &str, ports: &[&str], packets: &Packets, queues: [&str; 2]) -> String {
    let mut script = format!("add table {TABLE}\n");
    let mut add = |line: String| {
        let _ = writeln!(script, "{line}"); // a String never fails to grow
    };
    for port in ports {
        let chain = format!("{TABLE} twice-{port}");
        add(format!(
            "add chain {chain} {{ type filter hook egress device \"{port}\" priority 20; }}\n\
             flush chain {chain}\n\
             add rule {chain} meta mark {TWICE} meta mark set {DOUBLED} counter dup to \"{port}\""
        ));
    }
    let ways = [
        ("from", Direction::From, "ingress"),
        ("to", Direction::To, "egress"),
    ];
    for ((name, way, hook), queue) in ways.into_iter().zip(queues) {
        let chain = format!("{TABLE} {name}-{port}");
        add(format!(
            "add chain {chain} {{ type filter hook {hook} device \"{port}\" priority 10; }}\n\
             flush chain {chain}"
        ));
        if !packets.direction.has(way) {
            continue;
        }
        let only = packets.only.matches();
        let mut rule = |part: Loss, what: String| {
            let dice = match part.per_million() {
                0 => return,
                1_000_000 => String::new(),
                part => format!("numgen random mod 1000000 < {part} "),
            };
            add(format!("add rule {chain} {only}{dice}{what}"));
        };
        rule(packets.lose, "counter drop".into());
        // A packet that has been late, or is a double, is not judged again.
        if way == Direction::To {
            let done = format!("meta mark {{ {LATE}, {DOUBLED} }} accept");
            rule(Loss::ALL, done);
        }
        rule(packets.twice, format!("meta mark set {TWICE} counter"));
        rule(packets.late, format!("counter fwd to \"{queue}\""));
    }
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_good_cable_has_no_rules_of_its_own() {
        let script = script("ds1", &["ds1"], &Packets::default(), ["", ""]);
        assert!(script.contains("flush chain netdev baton_fault from-ds1"));
        assert!(
            !script.contains("rule netdev baton_fault from-ds1"),
            "{script}"
        );
        assert!(!script.contains("numgen"), "{script}");
    }

    #[test]
    fn one_way_and_one_kind_are_all_that_is_met() -> Result<(), String> {
        let packets = Packets {
            lose: Loss::new(0.5)?,
            only: Only::Lccp,
            direction: Direction::To,
            ..Packets::default()
        };
        let script = script("ds1", &["ds1"], &packets, ["", ""]);
        let rule = "to-ds1 ip protocol 253 numgen random mod 1000000 < 500000 counter drop";
        assert!(script.contains(rule), "{script}");
        assert!(
            !script.contains("rule netdev baton_fault from-ds1"),
            "{script}"
        );
        Ok(())
    }
}
