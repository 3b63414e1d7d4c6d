//! A step that repeats other steps.

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::step::Step;
use crate::world::World;

/// Runs some steps one after the other, a number of times.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    times: usize,
    steps: Vec<Step>,
}

impl Repeat {
    /// Runs the step.
    ///
    /// # Errors
    /// A step failed.
    pub fn run(&self, world: &mut World) -> Result<()> {
        for turn in 1..=self.times {
            for step in &self.steps {
                step.run(world)
                    .with_context(|| format!("{step}, time {turn} of {}", self.times))?;
            }
        }
        Ok(())
    }
}
