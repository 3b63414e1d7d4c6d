//! A step whose clients connect before they need the connection.

use std::thread::sleep;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use socket2::{SockRef, TcpKeepalive};

use super::http::{ask, connect};
use crate::span::{Span, seconds};
use crate::world::World;

/// Opens connections whose clients probe every second whether the server is there, and send a request only later. Each
/// must get its answer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ahead {
    connections: usize,
    /// How long the clients wait before their request.
    r#for: Span,
}

/// The number of unanswered probes after which a client gives its connection up.
const PROBES: u32 = 3;

impl Ahead {
    /// Runs the step.
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
