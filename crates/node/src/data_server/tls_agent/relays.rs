//! Requests that go to another data server without their connection, because it cannot move.
//!
//! ```text
//!  agent --Relay, then bytes--> daemon ==a channel==> daemon --Relay: a number--> agent
//!                                                     daemon <--Relayed: the number, then bytes-- agent --> the server
//! ```
//!
//! The bytes are the agents' own, in frames (`crates/agent/src/terminate/framed.rs`); the daemons only copy them.

use std::{
    collections::HashMap,
    io,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use baton_agent::{
    Ends,
    terminate::messages::{ToAgent, read_ends, write_ends},
};
use baton_streams::{Ask, Opened};
use tokio::{
    io::copy_bidirectional,
    net::UnixStream,
    sync::{mpsc, oneshot},
    time::timeout,
};

use crate::locked::locked;

/// Another data server is reached within this time, and its agent connects.
const PATIENCE: Duration = Duration::from_secs(2);

/// The channels of other data servers for which the agent here is to connect, by number.
#[derive(Default)]
pub struct Relays {
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, oneshot::Sender<UnixStream>>>,
}

impl Relays {
    /// Notes that the agent has connected.
    pub fn connected(&self, number: u64, agent: UnixStream) {
        let waiting = locked(&self.waiting).remove(&number);
        if let Some(waiting) = waiting {
            // Who waits may have lost patience.
            let _ = waiting.send(agent);
        }
    }

    /// Has the agent, to which messages go by `to`, connect for the channel of another data server. Copies until it ends.
    pub async fn serve(&self, opened: Opened, to: mpsc::Sender<ToAgent>) -> io::Result<()> {
        let Opened {
            text, mut channel, ..
        } = opened;
        let ends = read_ends(&mut &text[..]).ok_or(io::ErrorKind::InvalidData)?;
        let number = self.next.fetch_add(1, Relaxed);
        let (sender, connected) = oneshot::channel();
        locked(&self.waiting).insert(number, sender);
        let connecting = async {
            to.send(ToAgent::Relay(number, ends)).await.ok()?;
            connected.await.ok()
        };
        let agent = timeout(PATIENCE, connecting).await;
        locked(&self.waiting).remove(&number);
        let mut agent = agent?.ok_or(io::ErrorKind::NotConnected)?;
        copy_bidirectional(&mut agent, &mut channel).await.map(drop)
    }
}

/// Copies between the agent here and the one that `ask` reaches, until one of them ends.
pub async fn relay(mut agent: UnixStream, ends: Ends, ask: &Ask) -> io::Result<()> {
    let mut text = Vec::new();
    write_ends(&mut text, &ends);
    let mut channel = ask.open(&text, PATIENCE).await?;
    copy_bidirectional(&mut agent, &mut channel).await.map(drop)
}
