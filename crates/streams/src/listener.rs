//! Receives what other nodes send.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use baton_wire::{KeyRing, Keys};
use quinn::{Connection, Endpoint, Incoming, VarInt};
use tokio::sync::{Mutex, Semaphore, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tracing::debug;

use crate::channel::Opened;
use crate::frame::{self, Text, Topic};
use crate::question::{self, Question};
use crate::shared;

/// How many nodes may be proving who they are at the same time.
const PROVING: usize = 64;
/// How long a node may take to prove who it is.
const PATIENCE: Duration = Duration::from_secs(5);

/// A text that another node has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamMessage {
    /// The sending node.
    pub from: Ipv4Addr,
    /// The topic of the text.
    pub topic: Topic,
    /// The newest text of the topic.
    pub text: Text,
}

/// Accepts the streams of other nodes.
pub(crate) struct Listener {
    pub endpoint: Endpoint,
    pub keys: watch::Receiver<KeyRing>,
    pub heard: mpsc::Sender<StreamMessage>,
    pub questions: mpsc::Sender<Question>,
    pub channels: mpsc::Sender<Opened>,
}

/// The tasks that receive from one node each. If a node connects again, its new task begins only after the old one has
/// ended; otherwise the old task could deliver an older text last.
type Hearing = Arc<Mutex<HashMap<Ipv4Addr, JoinHandle<()>>>>;

impl Listener {
    /// Runs until the endpoint is closed.
    pub async fn run(self) {
        let hearing = Hearing::default();
        let proving = Arc::new(Semaphore::new(PROVING));
        while let Some(incoming) = self.endpoint.accept().await {
            let IpAddr::V4(from) = incoming.remote_address().ip() else {
                incoming.ignore();
                continue;
            };
            let Some(keys) = self.keys.borrow().peer(from) else {
                debug!(%from, "a stream from no node");
                incoming.ignore();
                continue;
            };
            // Anybody can put a node's address on a packet. A peer that gets an answer at an address has that address.
            if !incoming.remote_address_validated() {
                // An error is impossible: only a validated peer cannot be told to retry.
                let _ = incoming.retry();
                continue;
            }
            let (Ok(config), Ok(permit)) = (
                shared::server(&keys),
                Arc::clone(&proving).try_acquire_owned(),
            ) else {
                incoming.refuse();
                continue;
            };
            let (hearing, heard) = (Arc::clone(&hearing), self.heard.clone());
            let asked = (self.questions.clone(), self.channels.clone());
            let changed = self.keys.clone();
            tokio::spawn(async move {
                let proven = timeout(PATIENCE, prove(incoming, config)).await;
                drop(permit);
                match proven {
                    Ok(Ok(connection)) => {
                        let mut hearing = hearing.lock().await;
                        if let Some(before) = hearing.remove(&from) {
                            before.abort();
                            let _ = before.await; // aborted, or ended by itself
                        }
                        let task = hear(connection, (from, keys), changed, heard, asked);
                        hearing.insert(from, tokio::spawn(task));
                    }
                    Ok(Err(error)) => debug!(%from, "a stream that proves nothing: {error}"),
                    Err(_) => debug!(%from, "a stream that proves nothing in time"),
                }
            });
        }
    }
}

async fn prove(incoming: Incoming, config: quinn::ServerConfig) -> io::Result<Connection> {
    Ok(incoming.accept_with(Arc::new(config))?.await?)
}

/// Receives until the node ends the connection, is silent, or no longer shares the same keys with this node: it may
/// have proved a key that is no longer valid.
async fn hear(
    connection: Connection,
    (from, keys): (Ipv4Addr, Keys),
    mut changed: watch::Receiver<KeyRing>,
    heard: mpsc::Sender<StreamMessage>,
    (questions, channels): (mpsc::Sender<Question>, mpsc::Sender<Opened>),
) {
    let other_key = async {
        let is_other = |ring: &KeyRing| ring.peer(from) != Some(keys);
        // An error means that nobody changes keys anymore, because the node ends.
        let _ = changed.wait_for(is_other).await;
    };
    let reading = async {
        let mut stream = connection.accept_uni().await?;
        while let Some((topic, text)) = frame::read(&mut stream).await? {
            let Some(topic) = topic else {
                debug!(%from, "a topic that this version does not know");
                continue;
            };
            if heard
                .send(StreamMessage { from, topic, text })
                .await
                .is_err()
            {
                break;
            }
        }
        io::Result::Ok(())
    };
    tokio::select! {
        ended = question::take(&connection, from, &questions, &channels) => if let Err(error) = ended {
            debug!(%from, "no more questions come: {error}");
        },
        ended = reading => if let Err(error) = ended {
            debug!(%from, "a stream ended: {error}");
        },
        () = other_key => {}
    }
    // Otherwise it would live as long as its channels.
    connection.close(VarInt::from_u32(0), b"");
}
