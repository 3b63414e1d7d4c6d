//! A step that runs `baton migrate`.

use anyhow::{Result, ensure};
use serde::Deserialize;

use crate::world::World;

/// Has one connection server take over from another, or expects a refusal.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Migrate {
    /// The host on which the command runs, if not `from`.
    on: Option<String>,
    from: String,
    to: String,
    /// The least number of connections that must go over.
    #[serde(default)]
    at_least: u64,
    /// Expects that nothing moves, with this text in the reason.
    refused: Option<String>,
}

impl Migrate {
    /// Runs the step.
    ///
    /// # Errors
    /// The command was refused or accepted against expectation, or fewer connections went over.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let on = self.on.as_ref().unwrap_or(&self.from);
        let output = world.baton(on, &["migrate", &self.from, &self.to, "--json"])?;
        let said = String::from_utf8_lossy(&output.stderr);
        if let Some(reason) = &self.refused {
            ensure!(!output.status.success(), "it was done");
            ensure!(
                said.contains(reason),
                "it was refused because of {said:?}, not {reason:?}"
            );
            return Ok(());
        }
        ensure!(
            output.status.success(),
            "baton migrate: {}\n{said}",
            output.status
        );
        let summary: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        eprintln!("  {} -> {}: {summary}", self.from, self.to);
        let went = summary["passes"][0].as_u64().unwrap_or(0);
        ensure!(
            went >= self.at_least,
            "{went} connections went over, fewer than {}",
            self.at_least
        );
        for left_out in ["full", "no_owner", "no_service"] {
            ensure!(summary[left_out] == 0, "entries were left out: {summary}");
        }
        Ok(())
    }
}
