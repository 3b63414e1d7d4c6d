//! Steps that change hosts and links, or run commands.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use baton_lab::BRIDGE;
use serde::Deserialize;

use crate::span::{Span, seconds};
use crate::world::World;

/// Has the network lose, from this step on, the first segment with data of every connection that the client opens,
/// once.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoseFirst {}

/// Checks that at least so many packets have been lost since the step that loses them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lost {
    at_least: u64,
}

/// Runs a command on a host.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    on: String,
    /// The words of the command: `{dir}` is the host's directory, `{baton}` the program under test.
    command: Vec<String>,
    /// How long the command may take.
    #[serde(default = "limit")]
    within: Span,
    /// Whether it kills a daemon or a TLS agent there, whose sockets then end at any moment (`guard.rs`).
    #[serde(default)]
    kills: bool,
}

/// Sets kernel parameters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sysctl {
    on: String,
    /// The values, by the parameters' names as sysctl(8) takes them.
    set: BTreeMap<String, String>,
}

impl LoseFirst {
    /// Sets the rules, by nftables at the client's port of the bridge. A segment without data is an IP packet of 40
    /// bytes, or of 52 with timestamps. What leaves the client in one piece crosses the bridge in one piece, so the
    /// client's kernel must do the segmentation itself.
    ///
    /// # Errors
    /// nft or ethtool refuses.
    pub fn run(&self, world: &mut World) -> Result<()> {
        const RULES: &str = r#"table netdev baton_first {
            set begun { type ipv4_addr . inet_service; flags dynamic; size 65536; }
            chain from_client {
                type filter hook ingress device "client" priority -5; policy accept;
                tcp flags & (syn | rst) == 0 ip length > 52 \
                    ip saddr . tcp sport != @begun \
                    add @begun { ip saddr . tcp sport } counter drop
            }
        }"#;
        let cut = ["ethtool", "-K", "eth0", "tso", "off", "gso", "off"];
        world.run("client", &cut)?;
        world.run(BRIDGE, &["nft", RULES]).map(drop)
    }
}

impl Lost {
    /// Runs the check, by the counters of the nftables rules that drop the packets.
    ///
    /// # Errors
    /// Fewer packets were lost, so the scenario has shown nothing.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let listed = world.run(BRIDGE, &["nft", "list", "ruleset"])?;
        let lost: u64 = listed
            .lines()
            .filter_map(|line| {
                line.split_once("counter packets ")?
                    .1
                    .split(' ')
                    .next()?
                    .parse::<u64>()
                    .ok()
            })
            .sum();
        ensure!(
            lost >= self.at_least,
            "{lost} packets were lost, not {} or more",
            self.at_least
        );
        Ok(())
    }
}

impl Run {
    /// Runs the step.
    ///
    /// # Errors
    /// The command fails.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let words: Vec<String> = self
            .command
            .iter()
            .map(|word| world.fill(&self.on, word))
            .collect::<Result<_>>()?;
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        if self.kills {
            world.killed.insert(self.on.clone());
        }
        world.run_within(&self.on, &words, self.within.0).map(drop)
    }
}

impl Sysctl {
    /// Runs the step.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn run(&self, world: &mut World) -> Result<()> {
        world.lab.within(&self.on, || {
            self.set.iter().try_for_each(|(name, value)| {
                let path = format!("/proc/sys/{}", name.replace('.', "/"));
                std::fs::write(&path, value)
                    .with_context(|| format!("cannot write {value} to {path}"))
            })
        })?
    }
}

fn limit() -> Span {
    seconds(60)
}
