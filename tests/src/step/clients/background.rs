//! Steps for clients that go on while further steps happen, and are judged when they end.
//!
//! ```toml
//! [[step]]
//! do = "begin"
//! downloads = [{ path = "/64m", rate = "40mbit" }, { path = "/ds1/1m", rate = "2mbit", clients = 3 }]
//! requests = { paths = ["/ds1/4k", "/ds2/4k"], connections = 8 }
//! load = { tool = "wrk", path = "/4k", connections = 16 }
//!
//! # … faults, reloads, migrations …
//!
//! [[step]]
//! do = "finish"
//! ```
//!
//! No request may fail and no byte may be wrong. How long clients had to wait is printed, separately for each `{ do =
//! "phase", name = "…" }`, but not judged.

mod download;
mod requests;
pub mod running;
mod stalls;
mod tally;

use std::sync::{Arc, atomic::Ordering::Relaxed};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use serde::Deserialize;

use self::running::{Background, Orders};
use self::{download::Download, requests::Requests, tally::Tally};
use super::load::{Load, running::Going};
use crate::world::World;

/// The greatest number of failures that are printed.
const SHOWN: usize = 20;

/// Starts clients, each of which runs until `finish`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Begin {
    /// Downloads by curl, one page after the other, each over a connection of its own.
    #[serde(default)]
    downloads: Vec<Download>,
    /// Short requests over connections that stay open.
    requests: Option<Requests>,
    /// A load as in the step `load`, without steps meanwhile. Its length is ignored.
    load: Option<Load>,
}

/// Ends the clients, each after its current page, and judges what they saw.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finish {
    /// Data servers that were ended on purpose: downloads and requests that broke off there are counted, not judged. A
    /// wrong byte is always a failure.
    #[serde(default)]
    may_fail: Vec<String>,
    /// The least number of failures at these data servers: with fewer, the scenario has shown nothing.
    #[serde(default)]
    failed_at_least: usize,
}

/// Names what the following steps do. The waits of clients are printed under this name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    name: String,
}

impl Begin {
    /// Runs the step.
    ///
    /// # Errors
    /// Clients run already, or a page is not one of the lab's files.
    pub fn run(&self, world: &mut World) -> Result<()> {
        ensure!(
            world.background.is_none(),
            "clients run already: `finish` them first"
        );
        let orders = Arc::new(Orders::default());
        let mut clients = Vec::new();
        for download in &self.downloads {
            clients.extend(download.begin(world, &orders)?);
        }
        if let Some(requests) = &self.requests {
            clients.extend(requests.begin(world, &orders)?);
        }
        let mut background = Background {
            clients,
            load: None,
            orders,
        };
        let load = self.load.as_ref().map(|load| load.begin(world));
        let begun = load.transpose().map(|load| background.load = load);
        // The clients are kept even if the load failed to start, so that the world's end also ends them.
        world.background = Some(background);
        begun
    }
}

impl Phase {
    /// Tells the clients the name of the new phase.
    ///
    /// # Errors
    /// No clients run.
    pub fn run(&self, world: &World) -> Result<()> {
        let background = world.background.as_ref();
        let background = background.context("no step has begun any clients")?;
        background.orders.phases.begin(&self.name);
        Ok(())
    }
}

impl Finish {
    /// Runs the step.
    ///
    /// # Errors
    /// A request failed where none may, bytes were wrong, or a client did nothing at all.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let background = world.background.take();
        let background = background.context("no step has begun any clients")?;
        background.orders.finish.store(true, Relaxed);
        let load = background.load.map(Going::end);
        let mut whole = Tally::default();
        for (name, client) in background.clients {
            let tally = (client.join()).map_err(|_| anyhow!("{name}: its thread panicked"))?;
            ensure!(
                tally.done > 0 || !tally.failed.is_empty(),
                "{name}: it has done nothing"
            );
            whole.add(&name, tally);
        }
        eprintln!("  {whole}");
        if let Some(said) = load.transpose()? {
            eprintln!("  {said}");
        }
        let (there, elsewhere): (Vec<_>, Vec<_>) = (whole.failed.into_iter())
            .partition(|one| !one.never_allowed && one.was_of(&self.may_fail));
        if !elsewhere.is_empty() {
            let first = elsewhere.iter().take(SHOWN).map(ToString::to_string);
            let first: Vec<String> = first.collect();
            bail!("{} requests failed:\n{}", elsewhere.len(), first.join("\n"));
        }
        ensure!(
            there.len() >= self.failed_at_least,
            "{} requests failed at {:?}, not {} or more",
            there.len(),
            self.may_fail,
            self.failed_at_least
        );
        Ok(())
    }
}
