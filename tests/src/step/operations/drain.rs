//! A step that runs `baton drain`.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde::Deserialize;

use crate::world::World;

/// Runs `baton drain` on a host, and expects success or failure.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drain {
    on: String,
    /// The arguments of `baton drain`.
    args: Vec<String>,
    /// Texts that the command must print.
    #[serde(default)]
    says: Vec<String>,
    /// Expects that the command fails.
    #[serde(default)]
    fails: bool,
}

/// A time limit that is longer than any drain of a scenario.
const LONGEST: Duration = Duration::from_secs(300);

impl Drain {
    /// Runs the step. It prints how long an emptying took and does not judge it, because that depends on the machine.
    ///
    /// # Errors
    /// The command ends otherwise, or prints something else.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let output = world
            .command(&self.on, LONGEST)?
            .arg(&world.baton)
            .arg("drain")
            .args(&self.args)
            .arg("--config")
            .arg(world.config_path(&self.on)?)
            .output()?;
        let said = [&output.stdout[..], &output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        eprint!("  {}", String::from_utf8_lossy(&output.stdout));
        ensure!(
            output.status.code() == Some(i32::from(self.fails)),
            "baton drain {} ended with {}:\n{said}",
            self.args.join(" "),
            output.status
        );
        for part in &self.says {
            ensure!(said.contains(part), "it does not say {part:?}:\n{said}");
        }
        Ok(())
    }
}
