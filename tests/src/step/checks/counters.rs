//! Steps that check how counters move.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::span::Span;
use crate::world::{Counters, Marks, World};

/// Remembers the counters of hosts, and how long their nodes' logs are.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    on: Vec<String>,
}

/// Checks how far counters have moved since the last mark, or, without one, since the lab was raised. The counters of
/// several hosts are added up. Packets may still be on their way, so the step waits for counters that must move; a
/// counter that must not move is checked at every look, including the last one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moved {
    on: Vec<String>,
    #[serde(default)]
    at_least: BTreeMap<String, u64>,
    #[serde(default)]
    at_most: BTreeMap<String, u64>,
    #[serde(default = "crate::wait::patience")]
    within: Span,
}

impl Mark {
    /// Runs the step.
    ///
    /// # Errors
    /// A node does not answer.
    pub fn run(&self, world: &mut World) -> Result<()> {
        for host in &self.on {
            let counters = world.counters(host)?;
            world.marks.insert(host.clone(), counters);
            let log = world.log_path(host, "node")?;
            let length = std::fs::metadata(&log).map_or(0, |file| file.len());
            world.logged.insert(log, length);
        }
        Ok(())
    }
}

impl Moved {
    /// Expects that one counter of one host has moved by `least` or more.
    pub(crate) fn by(host: &str, counter: &str, least: u64) -> Moved {
        Moved {
            on: vec![host.to_owned()],
            at_least: BTreeMap::from([(counter.to_owned(), least)]),
            at_most: BTreeMap::new(),
            within: crate::wait::patience(),
        }
    }

    /// Runs the check.
    ///
    /// # Errors
    /// A counter has moved too far, or not far enough.
    pub fn run(&self, world: &mut World) -> Result<()> {
        self.wait(world, &world.marks)
    }

    /// Runs the check for the first host, given what its counters were before.
    pub(crate) fn since(&self, world: &World, before: Counters) -> Result<()> {
        let marks = self.on.iter().cloned().zip([before]).collect();
        self.wait(world, &marks)
    }

    fn wait(&self, world: &World, marks: &Marks) -> Result<()> {
        let end = Instant::now() + self.within.0;
        loop {
            let moved = self.moved(world, marks)?;
            for (name, most) in &self.at_most {
                let by = of(&moved, name)?;
                ensure!(
                    by <= *most,
                    "{name} moved by {by}, not by {most} or less:\n{}",
                    shown(&moved)
                );
            }
            match self.far_enough(&moved) {
                Err(_) if Instant::now() < end => std::thread::sleep(Duration::from_millis(100)),
                done => return done,
            }
        }
    }

    fn far_enough(&self, moved: &Counters) -> Result<()> {
        for (name, least) in &self.at_least {
            let by = of(moved, name)?;
            ensure!(
                by >= *least,
                "{name} moved by {by}, not by {least} or more:\n{}",
                shown(moved)
            );
        }
        Ok(())
    }

    fn moved(&self, world: &World, marks: &Marks) -> Result<Counters> {
        let mut sum = Counters::new();
        for host in &self.on {
            for (name, value) in world.counters(host)? {
                let before = marks
                    .get(host)
                    .and_then(|mark| mark.get(&name))
                    .copied()
                    .unwrap_or(0);
                *sum.entry(name).or_default() += value.saturating_sub(before);
            }
        }
        Ok(sum)
    }
}

fn of(moved: &Counters, name: &str) -> Result<u64> {
    let found = moved.get(name).copied();
    found.with_context(|| format!("there is no counter {name}"))
}

/// The counters that have moved, a line each.
pub(crate) fn shown(counters: &Counters) -> String {
    let moving = counters.iter().filter(|(_, value)| **value > 0);
    moving
        .map(|(name, value)| format!("  {name} {value}\n"))
        .collect()
}
