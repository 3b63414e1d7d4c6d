//! Steps that end programs of the lab and start them again.

use anyhow::{Context as _, Result, ensure};
use baton_lab::Signal;
use serde::Deserialize;

use crate::wait::{patience, until};
use crate::world::World;

/// Sends a signal. If the signal ends programs, the step waits for their end.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kill {
    /// The programs as "host/thing", for instance "cs1/node".
    things: Vec<String>,
    /// The signal: "KILL", "TERM", "QUIT", "HUP", "STOP" or "CONT".
    signal: String,
}

/// Signals that end a program unless it handles or ignores them.
const ENDING: [Signal; 4] = [
    Signal::SIGKILL,
    Signal::SIGTERM,
    Signal::SIGQUIT,
    Signal::SIGINT,
];

/// Starts again the programs that were ended, and waits until they are ready.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restart {
    /// The programs as "host/thing".
    things: Vec<String>,
}

impl Kill {
    /// A signal to a single program.
    pub(crate) fn one(host: &str, thing: &str, signal: &str) -> Kill {
        Kill {
            things: vec![format!("{host}/{thing}")],
            signal: signal.to_owned(),
        }
    }

    /// Runs the step.
    ///
    /// # Errors
    /// There is no such program or signal.
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
    /// Runs the step.
    ///
    /// # Errors
    /// A program does not become ready.
    pub fn run(&self, world: &mut World) -> Result<()> {
        for thing in &self.things {
            let (host, thing) = split(thing)?;
            world.lab.restart(host, thing)?;
        }
        Ok(())
    }
}

fn until_gone(world: &World, host: &str, thing: &str) -> Result<()> {
    until(patience(), || {
        let things = world.lab.host(host)?.things;
        let lives = things.iter().any(|one| one.name == thing && one.alive);
        ensure!(!lives, "{thing} on {host} does not end");
        Ok(())
    })
}

fn split(thing: &str) -> Result<(&str, &str)> {
    thing
        .split_once('/')
        .with_context(|| format!("{thing:?} is not host/thing"))
}
