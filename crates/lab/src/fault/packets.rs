//! What happens to the packets of a link: lost, doubled, late.
//!
//! By nftables at the host's port on the bridge, beside the loss of the lab file. The kernel itself
//! doubles (`dup`, Linux 4.6; at egress 5.17); what is to be late is given to a process
//! ([`super::late`]), because this takes no module.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Deserialize;

use super::late::{self, LATE};
use crate::error::Result;
use crate::file::{BRIDGE, Host, Loss};
use crate::netns::Namespace;
use crate::running::Running;
use crate::state::{Lock, State};
use crate::{tool, topology};

const TABLE: &str = "netdev baton_fault";
/// To be doubled where it leaves the bridge.
const TWICE: u32 = 0x00ba_702d;
/// Has been.
const DOUBLED: u32 = 0x00ba_702e;

/// Each part is of the packets meant, 0 to 1. The default is a good cable.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Packets {
    /// Never arrive.
    pub lose: Loss,
    /// Arrive twice.
    pub twice: Loss,
    /// Arrive later: some overtake others, unless it is all of them.
    pub late: Loss,
    /// By so much, at least.
    pub by: Duration,
    /// Which packets are meant.
    pub only: Only,
    /// And on which way.
    pub direction: Direction,
}

/// Which packets a fault is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Only {
    /// All.
    #[default]
    All,
    /// Messages between nodes.
    Lccp,
    /// Clients' and servers' TCP that is not inside a message.
    Tcp,
}

/// On which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the host and to it.
    #[default]
    Both,
    /// What the host sends.
    From,
    /// What it gets.
    To,
}

impl Running {
    /// What happens to the packets of a host's link, in place of what was said before.
    pub(super) fn disturb(&self, host: &str, packets: &Packets) -> Result<()> {
        let _lock = Lock::lab(self.lab().name(), &mut |_| {})?;
        let mut state = self.state()?;
        let at = self.file_host(host)?;
        let bridge = self.namespace(&state, BRIDGE)?.clone();
        let ports: Vec<&str> = (self.lab().hosts().iter())
            .map(|host| host.name.as_str())
            .collect();
        // The rules first: what they name must be there before, and they must be gone before it is.
        nft(
            &bridge,
            &script(host, &ports, &Packets::default(), ["", ""]),
        )?;
        late::end(&mut state, &bridge, host)?;
        if *packets == Packets::default() {
            return state.save();
        }
        let place = ports.iter().position(|port| *port == host).unwrap_or(0);
        let queues = if packets.late == Loss::default() {
            Default::default()
        } else {
            self.queues(&mut state, &bridge, at, place, packets)?
        };
        let [from, to] = &queues;
        nft(&bridge, &script(host, &ports, packets, [from, to]))?;
        // A loss is to be of one packet and not of 64 KiB at once.
        let hosts = self.namespaces(&state)?;
        topology::single_packets(&bridge, &hosts, true)
    }

    /// Starts the processes that make packets late; gives the devices that lead to them.
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

impl Direction {
    fn has(self, way: Direction) -> bool {
        self == Direction::Both || self == way
    }
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

fn nft(bridge: &Namespace, script: &str) -> Result<()> {
    let mut nft = tool::tool("nsenter", [""; 0])?;
    nft.arg(format!("--net={}", bridge.path().display()))
        .args(["--", "nft", "-f", "-"]);
    tool::finish(nft, Some(script)).map(drop)
}

/// The chains of one port, emptied and filled. `queues` lead to what makes packets late, from the host
/// and to it.
///
/// What comes from the host is doubled where it leaves the bridge: only there is known by which port.
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
        // What has been late, or is the second of two, has been judged.
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
