//! A step with many clients at the same time, which do nothing while other steps run.

use std::net::TcpStream;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::http::{ask, connect};
use crate::step::{Step, meanwhile};
use crate::world::World;

/// Opens connections that stay open after one request. At the end each connection sends one more request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crowd {
    /// The number of connections.
    idle: usize,
    /// Data servers that must not answer the last requests.
    #[serde(default)]
    not_by: Vec<String>,
    /// The steps that run meanwhile.
    meanwhile: Vec<Step>,
}

impl Crowd {
    /// Runs the step.
    ///
    /// # Errors
    /// A step failed, or a connection ended.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let mut streams = world.lab.within("client", || open(self.idle))??;
        meanwhile(&self.meanwhile, world)?;
        for (number, stream) in streams.iter_mut().enumerate() {
            let host = ask(stream).with_context(|| format!("connection {number}, at the end"))?;
            ensure!(
                !self.not_by.contains(&host),
                "connection {number} is answered by {host}"
            );
        }
        Ok(())
    }
}

fn open(count: usize) -> Result<Vec<TcpStream>> {
    (0..count)
        .map(|number| {
            let mut stream = connect(None, 80)?;
            ask(&mut stream).with_context(|| format!("connection {number}, at the beginning"))?;
            Ok(stream)
        })
        .collect()
}
