//! Steps that count what the kernel holds for sockets, including those that no process and no table knows any longer.

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::span::Span;
use crate::wait::until;
use crate::world::{Sockets, World};

/// Remembers how many sockets there are.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Count {
    on: Vec<String>,
}

/// Checks that there are no more sockets than were remembered. Daemons open and close sockets all the time, so the
/// step waits for a moment at which the number is low enough.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoMore {
    on: Vec<String>,
    /// How many pages of TCP buffer memory may be in use beyond those that were remembered. The kernel counts them for
    /// the whole machine, so other programs need time to finish what they have under way, and each processor reserves
    /// some pages (net.core.mem_pcpu_rsv).
    more_pages_at_most: u64,
    #[serde(default = "crate::wait::patience")]
    within: Span,
}

impl Count {
    /// Runs the step.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn run(&self, world: &mut World) -> Result<()> {
        for host in &self.on {
            let sockets = Sockets::on(world, host)?;
            world.sockets.insert(host.clone(), sockets);
        }
        Ok(())
    }
}

impl NoMore {
    /// Waits until there are no more sockets and pages than allowed.
    ///
    /// # Errors
    /// There are more.
    pub fn run(&self, world: &mut World) -> Result<()> {
        for host in &self.on {
            let before = *(world.sockets.get(host))
                .with_context(|| format!("nobody counted the sockets of {host}"))?;
            until(self.within, || {
                let now = Sockets::on(world, host)?;
                ensure!(
                    now.used <= before.used && now.pages <= before.pages + self.more_pages_at_most,
                    "{host} had {before:?}, and now has {now:?}"
                );
                Ok(())
            })?;
        }
        Ok(())
    }
}

impl Sockets {
    fn on(world: &World, host: &str) -> Result<Sockets> {
        let read = || std::fs::read_to_string("/proc/thread-self/net/sockstat");
        let text = world.lab.within(host, read)??;
        let number = |line: &str, name: &str| -> Result<u64> {
            let values = text.lines().find_map(|text| text.strip_prefix(line));
            let mut words = values.unwrap_or_default().split(' ');
            words.find(|word| *word == name);
            let value = words
                .next()
                .with_context(|| format!("sockstat has no {line} {name}"))?;
            Ok(value.parse()?)
        };
        Ok(Sockets {
            used: number("sockets: ", "used")?,
            pages: number("TCP: ", "mem")?,
        })
    }
}
