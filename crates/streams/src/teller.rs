//! Keeps a connection to one other node. Sends it all topics, and each topic again when it changes.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddrV4;
use std::sync::Arc;
use std::time::Duration;

use baton_wire::{KeyRing, Keys};
use quinn::{Connection, Endpoint, VarInt};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};

use crate::frame::{self, Text, Topic};
use crate::shared;

/// The newest text of each topic.
pub(crate) type Topics = BTreeMap<Topic, Arc<Text>>;

/// The name is not checked: the peer is known by its key.
const SERVER_NAME: &str = "node.baton";
/// How long to wait for a connection. It is shorter than QUIC's own timeout, whose error does not say what to check.
const PATIENCE: Duration = Duration::from_secs(4);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// How long a node must be unreachable before a warning is logged. A node that restarts is back by then.
const COMPLAIN_AFTER: Duration = Duration::from_secs(10);

/// The sender of topics to one node.
pub(crate) struct Teller {
    pub endpoint: Endpoint,
    pub to: SocketAddrV4,
    pub keys: watch::Receiver<KeyRing>,
    pub topics: watch::Receiver<Topics>,
    /// The connection, for questions and channels, while there is one.
    pub reached: watch::Sender<Option<Connection>>,
}

impl Teller {
    /// Sends until the sender of the topics is dropped.
    pub async fn run(mut self) {
        let mut pause = FIRST_PAUSE;
        let (mut since, mut said) = (Instant::now(), false);
        while self.topics.has_changed().is_ok() {
            let node = *self.to.ip();
            let failed = match self.connect().await {
                Ok((connection, keys)) => {
                    if said {
                        info!(%node, "is told again what this node has to tell");
                    }
                    (pause, said) = (FIRST_PAUSE, false);
                    self.reached.send_replace(Some(connection.clone()));
                    let ended = self.tell(&connection, keys).await;
                    self.reached.send_replace(None);
                    connection.close(VarInt::from_u32(0), b"");
                    since = Instant::now();
                    ended.err()
                }
                Err(error) => Some(error),
            };
            if let Some(error) = failed.filter(|_| !said && since.elapsed() >= COMPLAIN_AFTER) {
                warn!(%node, to = %self.to, "cannot be told what this node has to tell: {error}");
                said = true;
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn connect(&mut self) -> io::Result<(Connection, Keys)> {
        let keys = self.keys_now().ok_or_else(|| {
            io::Error::other("it is no node of this cluster, or shares no key with this one")
        })?;
        let config = shared::client(&keys).map_err(io::Error::other)?;
        let connecting = (self.endpoint)
            .connect_with(config, self.to.into(), SERVER_NAME)
            .map_err(io::Error::other)?;
        let connection = timeout(PATIENCE, connecting).await;
        let connection = connection.map_err(|_| {
            io::Error::new(
                io::ErrorKind::TimedOut,
                "nothing answers there: is UDP to that port let through, and is the same [cluster] stream_port there?",
            )
        })??;
        Ok((connection, keys))
    }

    fn keys_now(&mut self) -> Option<Keys> {
        self.keys.borrow_and_update().peer(*self.to.ip())
    }

    /// Sends on one connection until the keys change or the sender of the topics is dropped.
    async fn tell(&mut self, connection: &Connection, keys: Keys) -> io::Result<()> {
        let mut stream = connection.open_uni().await?;
        let mut told = Topics::new();
        loop {
            let now = self.topics.borrow_and_update().clone();
            for (topic, text) in &now {
                if told.get(topic).is_none_or(|old| !Arc::ptr_eq(old, text)) {
                    frame::write(&mut stream, *topic, text).await?;
                }
            }
            told = now;
            tokio::select! {
                changed = self.topics.changed() => if changed.is_err() {
                    return Ok(());
                },
                changed = self.keys.changed() => if changed.is_err() || self.keys_now() != Some(keys) {
                    return Ok(());
                },
                reason = connection.closed() => return Err(reason.into()),
            }
        }
    }
}
