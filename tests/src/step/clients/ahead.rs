//! Clients that connect ahead of need.

use std::thread::sleep;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use socket2::{SockRef, TcpKeepalive};

use super::http::{ask, connect};
use crate::span::{Span, seconds};
use crate::world::World;

/// Connections whose clients ask whether anybody is there, every second, and only later for anything. Each gets its answer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ahead {
    connections: usize,
    /// How long they wait.
    r#for: Span,
}

/// Without an answer to so many probes a client gives its connection up.
const PROBES: u32 = 3;

impl Ahead {
    /// Does it.
    ///
    /// # Errors
    /// A connection ended, or had no answer.
    pub fn run(&self, world: &mut World) -> Result<()> {
        world.lab.within("client", || {
            let second = seconds(1).0;
            let probes = TcpKeepalive::new()
                .with_time(second)
                .with_interval(second)
                .with_retries(PROBES);
            let open = (0..self.connections).map(|_| {
                let stream = connect(None, 80)?;
                SockRef::from(&stream).set_tcp_keepalive(&probes)?;
                Ok(stream)
            });
            let mut streams = open.collect::<Result<Vec<_>>>()?;
            sleep(self.r#for.0);
            for (number, stream) in streams.iter_mut().enumerate() {
                ask(stream).with_context(|| format!("connection {number}, at last"))?;
            }
            Ok(())
        })?
    }
}
