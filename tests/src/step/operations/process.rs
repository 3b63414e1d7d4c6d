//! What runs in the lab is ended and started again.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use baton_lab::Signal;
use serde::Deserialize;

use crate::world::World;

/// Sends a signal, and waits for the end of what it ends.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kill {
    /// "host/thing", for instance "cs1/node".
    things: Vec<String>,
    /// "KILL", "TERM", "QUIT", "HUP", "STOP", "CONT".
    signal: String,
}

/// Signals that end whatever lets them.
const ENDING: [Signal; 4] = [
    Signal::SIGKILL,
    Signal::SIGTERM,
    Signal::SIGQUIT,
    Signal::SIGINT,
];

/// Starts again what was ended, and waits until it is ready.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restart {
    /// "host/thing".
    things: Vec<String>,
}

impl Kill {
    /// Of one thing.
    pub(crate) fn one(host: &str, thing: &str, signal: &str) -> Kill {
        Kill {
            things: vec![format!("{host}/{thing}")],
            signal: signal.to_owned(),
        }
    }

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
            if (thing, signal) == ("node", Signal::SIGKILL) {
                world.killed.insert(host.to_owned());
            }
        }
        if !ENDING.contains(&signal) {
            return Ok(());
        }
        for thing in &self.things {
            let (host, thing) = split(thing)?;
            until_gone(world, host, thing)?;
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

fn until_gone(world: &World, host: &str, thing: &str) -> Result<()> {
    let end = Instant::now() + crate::step::patience().0;
    let lives = || -> Result<bool> {
        let things = world.lab.host(host)?.things;
        Ok(things.iter().any(|one| one.name == thing && one.alive))
    };
    while lives()? {
        ensure!(Instant::now() < end, "{thing} on {host} does not end");
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

fn split(thing: &str) -> Result<(&str, &str)> {
    thing
        .split_once('/')
        .with_context(|| format!("{thing:?} is not host/thing"))
}
