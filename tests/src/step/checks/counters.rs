//! How counters move.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::span::Span;
use crate::world::{Counters, Marks, World};

/// Remembers the counters of hosts, and what their nodes have logged so far.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    on: Vec<String>,
}

/// How far counters have moved since the last mark, or, without one, since the lab was raised. What
/// several hosts count is added up. Packets may still be on their way: what must have moved is waited
/// for; what must not have is judged at every look, the last one included.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moved {
    on: Vec<String>,
    #[serde(default)]
    at_least: BTreeMap<String, u64>,
    #[serde(default)]
    at_most: BTreeMap<String, u64>,
    #[serde(default = "crate::step::patience")]
    within: Span,
}

impl Mark {
    /// Does it.
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
    /// One counter of one host, that far or farther.
    pub(crate) fn by(host: &str, counter: &str, least: u64) -> Moved {
        Moved {
            on: vec![host.to_owned()],
            at_least: BTreeMap::from([(counter.to_owned(), least)]),
            at_most: BTreeMap::new(),
            within: crate::step::patience(),
        }
    }

    /// Checks it.
    ///
    /// # Errors
    /// A counter has moved too far, or not far enough.
    pub fn run(&self, world: &mut World) -> Result<()> {
        self.wait(world, &world.marks)
    }

    /// Checks it for the first host, whose counters were these.
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

/// Those that have moved, a line each.
pub(crate) fn shown(counters: &Counters) -> String {
    let moving = counters.iter().filter(|(_, value)| **value > 0);
    moving
        .map(|(name, value)| format!("  {name} {value}\n"))
        .collect()
}
