//! How counters move.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::span::Span;
use crate::world::{Counters, World};

/// Remembers the counters of hosts.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    on: Vec<String>,
}

/// How far counters have moved since the last mark, or, without one, since the lab was raised. What
/// several hosts count is added up.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moved {
    on: Vec<String>,
    #[serde(default)]
    at_least: BTreeMap<String, u64>,
    #[serde(default)]
    at_most: BTreeMap<String, u64>,
    /// How long to wait for it.
    within: Option<Span>,
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
        }
        Ok(())
    }
}

impl Moved {
    /// Checks it.
    ///
    /// # Errors
    /// A counter has moved too far, or not far enough.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let end = Instant::now() + self.within.map_or(Duration::ZERO, |span| span.0);
        loop {
            match self.check(world) {
                Ok(()) => return Ok(()),
                Err(error) if Instant::now() >= end => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(100)),
            }
        }
    }

    fn check(&self, world: &World) -> Result<()> {
        let moved = self.moved(world)?;
        let of = |name: &String| {
            moved
                .get(name)
                .copied()
                .with_context(|| format!("there is no counter {name}"))
        };
        for (name, least) in &self.at_least {
            if of(name)? < *least {
                bail!(
                    "{name} moved by {}, not by {least} or more:\n{}",
                    of(name)?,
                    shown(&moved)
                );
            }
        }
        for (name, most) in &self.at_most {
            if of(name)? > *most {
                bail!(
                    "{name} moved by {}, not by {most} or less:\n{}",
                    of(name)?,
                    shown(&moved)
                );
            }
        }
        Ok(())
    }

    fn moved(&self, world: &World) -> Result<Counters> {
        let mut sum = Counters::new();
        for host in &self.on {
            for (name, value) in world.counters(host)? {
                let before = world
                    .marks
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

fn shown(counters: &Counters) -> String {
    let moving = counters.iter().filter(|(_, value)| **value > 0);
    moving
        .map(|(name, value)| format!("  {name} {value}\n"))
        .collect()
}
