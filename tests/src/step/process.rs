//! What runs in the lab is ended and started again.

use anyhow::{Context as _, Result};
use baton_lab::Signal;
use serde::Deserialize;

use crate::world::World;

/// Sends a signal.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kill {
    /// "host/thing", for instance "cs1/node".
    things: Vec<String>,
    /// "KILL", "TERM", "QUIT", "HUP", "STOP", "CONT".
    signal: String,
}

/// Starts again what was ended, and waits until it is ready.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restart {
    /// "host/thing".
    things: Vec<String>,
}

impl Kill {
    /// Does it.
    ///
    /// # Errors
    /// No such thing or signal.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let signal: Signal = format!("SIG{}", self.signal)
            .parse()
            .context("no such signal")?;
        for thing in &self.things {
            let (host, thing) = split(thing)?;
            world.lab.kill(host, thing, signal)?;
        }
        Ok(())
    }
}

impl Restart {
    /// Does it.
    ///
    /// # Errors
    /// It does not become ready.
    pub fn run(&self, world: &mut World) -> Result<()> {
        for thing in &self.things {
            let (host, thing) = split(thing)?;
            world.lab.restart(host, thing)?;
        }
        Ok(())
    }
}

fn split(thing: &str) -> Result<(&str, &str)> {
    thing
        .split_once('/')
        .with_context(|| format!("{thing:?} is not host/thing"))
}
