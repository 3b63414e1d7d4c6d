//! A step that checks who has answered how many requests.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use serde::Deserialize;

use crate::wait::{patience, until};
use crate::world::World;

/// Checks the servers' access logs: how many requests for a page there are in all, and which share each host has.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Served {
    path: String,
    at_least: u64,
    /// Each host's share of the requests, in percent; no other host may have any.
    shares: BTreeMap<String, f64>,
    /// By how many percent of all requests a share may differ.
    within_percent: f64,
}

impl Served {
    /// Runs the check.
    ///
    /// # Errors
    /// Requests are missing, or the shares differ.
    pub fn run(&self, world: &mut World) -> Result<()> {
        until(patience(), || self.check(world))
    }

    fn check(&self, world: &World) -> Result<()> {
        let request = format!("\"GET {} ", self.path);
        let mut served = BTreeMap::new();
        for host in world.lab.hosts()? {
            let log = host.directory.join("access.log");
            if log.exists() {
                let text = std::fs::read_to_string(log)?;
                let count = text.lines().filter(|line| line.contains(&request)).count() as u64;
                served.insert(host.name, count);
            }
        }
        let all: u64 = served.values().sum();
        ensure!(
            all >= self.at_least,
            "{all} requests, not {} or more",
            self.at_least
        );
        for (host, count) in &served {
            let expected = self.shares.get(host).copied().unwrap_or(0.0);
            let share = 100.0 * *count as f64 / all as f64;
            ensure!(
                (share - expected).abs() <= self.within_percent,
                "{host} has {share:.2} % instead of {expected} %: {served:?}"
            );
        }
        Ok(())
    }
}
