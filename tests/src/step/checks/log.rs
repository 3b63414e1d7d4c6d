//! What logs hold.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use serde::Deserialize;

use crate::span::Span;
use crate::world::World;

/// The log of something holds a text, or does not.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// Hosts.
    on: Vec<String>,
    /// What writes the log.
    #[serde(default = "node")]
    of: String,
    has: Option<String>,
    /// Since the host's last mark, or, without one, so far: nodes that have not yet heard each other say
    /// so as they start.
    lacks: Option<String>,
    #[serde(default = "crate::step::patience")]
    within: Span,
}

/// The servers' access logs: every line begins with the client's own address, and no line is missing.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessLog {
    on: Vec<String>,
    client: String,
    /// Lines in all.
    lines: usize,
    #[serde(default = "crate::step::patience")]
    within: Span,
}

impl Log {
    /// Checks it.
    ///
    /// # Errors
    /// It is not so.
    pub fn run(&self, world: &mut World) -> Result<()> {
        for host in &self.on {
            let path = world.log_path(host, &self.of)?;
            let shown = path.display();
            if let Some(lacks) = &self.lacks {
                let text = std::fs::read_to_string(&path)?;
                let before = world.logged.get(&path).copied().unwrap_or(0);
                let text = text.get(before as usize..).unwrap_or(&text);
                ensure!(!text.contains(lacks), "{shown} has {lacks:?}:\n{text}");
            }
            let Some(has) = &self.has else { continue };
            until(self.within, || {
                let text = std::fs::read_to_string(&path)?;
                ensure!(text.contains(has), "{shown} has no {has:?}:\n{text}");
                Ok(())
            })?;
        }
        Ok(())
    }
}

impl AccessLog {
    /// Checks it.
    ///
    /// # Errors
    /// A line names somebody else, or there are fewer or more.
    pub fn run(&self, world: &mut World) -> Result<()> {
        // Servers write their logs with some delay.
        until(self.within, || {
            let mut lines = 0;
            for host in &self.on {
                let text = std::fs::read_to_string(world.log_path(host, "access")?)?;
                ensure!(!text.is_empty(), "{host} has logged nothing");
                for line in text.lines() {
                    if line.split(' ').next() != Some(&self.client) {
                        bail!(
                            "{host} has logged another client than {}: {line}",
                            self.client
                        );
                    }
                    lines += 1;
                }
            }
            ensure!(
                lines == self.lines,
                "{lines} requests are logged instead of {}",
                self.lines
            );
            Ok(())
        })
    }
}

pub(crate) fn until(patience: Span, mut check: impl FnMut() -> Result<()>) -> Result<()> {
    let end = Instant::now() + patience.0;
    loop {
        match check() {
            Err(_) if Instant::now() < end => std::thread::sleep(Duration::from_millis(50)),
            done => return done,
        }
    }
}

fn node() -> String {
    "node".to_owned()
}
