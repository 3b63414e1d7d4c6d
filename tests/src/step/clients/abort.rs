//! A step whose clients end their connections by a RST.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use socket2::SockRef;

use super::http::{ask, connect};
use crate::step::{Step, meanwhile};
use crate::world::World;

/// Opens connections and gets one answer over each. After other steps, the clients abort the connections by a RST,
/// without any other segment before it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Abort {
    connections: usize,
    /// The steps that run before the clients abort.
    after: Vec<Step>,
}

impl Abort {
    /// Runs the step.
    ///
    /// # Errors
    /// A step failed, or a connection had no answer.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let open = || -> Result<Vec<_>> {
            let streams = (0..self.connections).map(|number| {
                let mut stream = connect(None, 80)?;
                ask(&mut stream).with_context(|| format!("connection {number}"))?;
                // With a linger time of zero, close(2) sends a RST.
                SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
                Ok(stream)
            });
            streams.collect()
        };
        let streams = world.lab.within("client", open)??;
        meanwhile(&self.after, world)?;
        drop(streams);
        Ok(())
    }
}
