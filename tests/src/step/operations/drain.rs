//! `baton drain`.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde::Deserialize;

use crate::world::World;

/// Runs it on a host, to a good end or to a bad one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drain {
    on: String,
    /// What stands behind `baton drain`.
    args: Vec<String>,
    /// Parts of what it says.
    #[serde(default)]
    says: Vec<String>,
    /// It must not do it.
    #[serde(default)]
    fails: bool,
}

/// Longer than any drain of a scenario.
const LONGEST: Duration = Duration::from_secs(300);

impl Drain {
    /// Does it. How long an emptying took is printed: that is the machine's to say.
    ///
    /// # Errors
    /// It ends otherwise, or says something else.
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
