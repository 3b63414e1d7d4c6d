//! RSTs that data servers send for connections of their own. Others are [`crate::guard`]'s matter.

use anyhow::{Result, ensure};
use serde::Deserialize;

use crate::guard::own_resets;
use crate::world::World;

/// How many there were since the lab was raised, from all these hosts together.
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
    /// Checks it.
    ///
    /// # Errors
    /// There were fewer, or more.
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
