//! Steps that check what logs hold.

use anyhow::{Result, bail, ensure};
use serde::Deserialize;

use crate::wait::{patience, until};
use crate::world::World;

/// Checks that a log holds a text, or that it lacks one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// The hosts whose logs are read.
    on: Vec<String>,
    /// The program that writes the log.
    #[serde(default = "node")]
    of: String,
    has: Option<String>,
    /// The text that the log must lack since the host's last mark, or, without one, since its beginning: nodes that
    /// have not yet heard each other log that as they start.
    lacks: Option<String>,
}

/// Checks the servers' access logs: every line begins with the client's own address, and no line is missing.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessLog {
    on: Vec<String>,
    client: String,
    /// The number of lines in all these logs together.
    lines: usize,
}

impl Log {
    /// Runs the check.
    ///
    /// # Errors
    /// The log does not hold the text, or holds what it must lack.
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
            until(patience(), || {
                let text = std::fs::read_to_string(&path)?;
                ensure!(text.contains(has), "{shown} has no {has:?}:\n{text}");
                Ok(())
            })?;
        }
        Ok(())
    }
}

impl AccessLog {
    /// Runs the check.
    ///
    /// # Errors
    /// A line names another client, or there are fewer or more lines.
    pub fn run(&self, world: &mut World) -> Result<()> {
        // Servers write their logs with some delay.
        until(patience(), || {
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

fn node() -> String {
    "node".to_owned()
}
