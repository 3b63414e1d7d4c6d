//! Clients that leave by a RST.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use socket2::SockRef;

use super::http::{ask, connect};
use crate::step::Step;
use crate::world::World;

/// Connections with one answer each, which their clients break off after other steps: by a RST, and without a word before.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Abort {
    connections: usize,
    /// Steps before that.
    after: Vec<Step>,
}

impl Abort {
    /// Does it.
    ///
    /// # Errors
    /// A step failed, or a connection had no answer.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let open = || -> Result<Vec<_>> {
            let streams = (0..self.connections).map(|number| {
                let mut stream = connect(None, 80)?;
                ask(&mut stream).with_context(|| format!("connection {number}"))?;
                // close(2) sends a RST.
                SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
                Ok(stream)
            });
            streams.collect()
        };
        let streams = world.lab.within("client", open)??;
        self.after.iter().try_for_each(|step| {
            step.run(world)
                .with_context(|| format!("before clients leave, {step}"))
        })?;
        drop(streams);
        Ok(())
    }
}
