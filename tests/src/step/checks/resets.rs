//! A step that counts the RSTs that data servers send for their own connections. [`crate::guard`] watches for others.

use anyhow::{Result, ensure};
use serde::Deserialize;

use crate::guard::own_resets;
use crate::world::World;

/// Checks how many such RSTs all these hosts together have sent since the lab was raised.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resets {
    on: Vec<String>,
    #[serde(default)]
    at_least: u64,
    #[serde(default = "any_number")]
    at_most: u64,
}

impl Resets {
    /// Runs the check.
    ///
    /// # Errors
    /// There were fewer RSTs, or more.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let mut sent = 0;
        for host in &self.on {
            sent += own_resets(&world.lab, host)?;
        }
        ensure!(
            (self.at_least..=self.at_most).contains(&sent),
            "{} sent {sent} RSTs for their own connections, not {} to {}",
            self.on.join(", "),
            self.at_least,
            self.at_most
        );
        Ok(())
    }
}

fn any_number() -> u64 {
    u64::MAX
}
