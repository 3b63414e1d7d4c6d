//! What the kernel holds for sockets, also for those that no process and no table knows any more.

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::log::until;
use crate::span::Span;
use crate::world::World;

/// Remembers how many there are.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Count {
    on: Vec<String>,
}

/// No more than were remembered. Daemons make some all the time, so a good moment is waited for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoMore {
    on: Vec<String>,
    /// Pages of memory of TCP's buffers, beyond what was remembered. The kernel counts them for the
    /// whole machine, so what other programs have under way must have its time to end, and each
    /// processor puts some aside (net.core.mem_pcpu_rsv).
    more_pages_at_most: u64,
    #[serde(default = "crate::step::patience")]
    within: Span,
}

/// What /proc/net/sockstat says: proc(5).
#[derive(Clone, Copy, Debug)]
pub struct Sockets {
    /// Of a host, of every kind and in every state but TIME_WAIT, until the last reference is gone: so
    /// also one that a program has leaked, which ss(8) does not show.
    used: u64,
    /// Of the machine.
    pages: u64,
}

impl Count {
    /// Does it.
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
    /// Waits for it.
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
