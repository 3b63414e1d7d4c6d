//! The daemon of this data server, as the connections of the process know it.
//!
//! The process connects to the daemon's socket, and connects again when a daemon that has died is back. What needs a
//! daemon waits until then.

use std::collections::HashMap;
use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use baton_core::locked::locked;
use baton_tls::TicketKeyRing;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{sleep, timeout};

use super::framed::Framed;
use super::messages::{FromAgent, Moving, ToAgent, receive, send};
use crate::client::Ends;

/// The time between two tries to connect to the daemon.
const AGAIN: Duration = Duration::from_millis(50);
/// A request for another data server waits this long for a daemon.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many messages may wait to be sent.
const WAITING: usize = 1024;

/// The handle with which connections reach the daemon.
#[derive(Clone)]
pub(super) struct Daemon(Arc<Shared>);

struct Shared {
    socket: PathBuf,
    messages: mpsc::Sender<Waiting>,
    /// Who waits to hear that a connection does not move, by the number of the question.
    asked: Mutex<HashMap<u64, oneshot::Sender<()>>>,
    next: AtomicU64,
    /// The connection to a daemon, by number. `None`: there is no daemon.
    connected: watch::Sender<Option<u64>>,
}

/// A daemon that can have connections move.
pub(super) struct Mover<'a> {
    shared: &'a Shared,
    /// The number of the connection to it.
    connection: u64,
}

/// A message that waits to be sent.
struct Waiting {
    message: FromAgent,
    /// It is for the daemon of this connection, and no later one: it answers what that has asked, or is of no use to others.
    connection: u64,
}

/// A question under way. It is forgotten when this is dropped.
struct Asking<'a> {
    shared: &'a Shared,
    number: u64,
    stays: oneshot::Receiver<()>,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        locked(&self.shared.asked).remove(&self.number);
    }
}

impl Shared {
    fn asking(&self) -> Asking<'_> {
        let number = self.next.fetch_add(1, Relaxed);
        let (sender, stays) = oneshot::channel();
        locked(&self.asked).insert(number, sender);
        Asking {
            shared: self,
            number,
            stays,
        }
    }

    /// Waits until there is a daemon. Returns the number of the connection to it; `None` if it takes too long.
    async fn present(&self) -> Option<u64> {
        let mut connected = self.connected.subscribe();
        let present = connected.wait_for(Option::is_some);
        *timeout(PATIENCE, present).await.ok()?.ok()?
    }

    /// Waits until the connection with this number has ended.
    async fn gone(&self, connection: u64) {
        let mut connected = self.connected.subscribe();
        // The sender lives as long as this.
        let _ = connected.wait_for(|now| *now != Some(connection)).await;
    }

    async fn say(&self, message: FromAgent, connection: u64) {
        let waiting = Waiting {
            message,
            connection,
        };
        // The receiver lives as long as the process.
        let _ = self.messages.send(waiting).await;
    }
}

impl Daemon {
    /// Begins to connect to the daemon at this socket. What the daemon says without being asked goes to `told`. Each
    /// daemon is told the ticket keys, and again when they change.
    pub fn connect(
        socket: PathBuf,
        build: String,
        told: mpsc::UnboundedSender<ToAgent>,
        ticket_keys: watch::Receiver<TicketKeyRing>,
    ) -> Self {
        let (messages, waiting) = mpsc::channel(WAITING);
        let shared = Arc::new(Shared {
            socket,
            messages,
            asked: Mutex::default(),
            next: AtomicU64::new(1),
            connected: watch::Sender::default(),
        });
        let link = Link {
            build,
            told,
            ticket_keys,
            shared: Arc::clone(&shared),
        };
        tokio::spawn(link.run(waiting));
        Self(shared)
    }

    /// Whether there is a daemon now.
    pub fn is_present(&self) -> bool {
        self.0.connected.borrow().is_some()
    }

    /// Says something that is no question, if there is a daemon.
    pub async fn say(&self, message: FromAgent) {
        let connection = *self.0.connected.borrow();
        if let Some(connection) = connection {
            self.0.say(message, connection).await;
        }
    }

    /// Says something that may as well be lost, as it is while there is no daemon.
    pub fn tell(&self, message: FromAgent) {
        let connection = *self.0.connected.borrow();
        if let Some(connection) = connection
            && self.0.messages.capacity() > WAITING / 2
        {
            // There is room, unless somebody else has just taken it.
            let _ = self.0.messages.try_send(Waiting {
                message,
                connection,
            });
        }
    }

    /// Opens the way to another data server's agent, for requests of this client's connection. Without a daemon they wait
    /// for one.
    ///
    /// # Errors
    /// No daemon has come. If the other agent cannot be reached, the connection ends.
    pub async fn relay(&self, next: Ipv4Addr, ends: Ends) -> io::Result<Framed<UnixStream>> {
        self.0.present().await;
        self.relaying(FromAgent::Relay(next, ends)).await
    }

    /// Accepts the requests that another data server's agent has, as the daemon has asked by this number.
    ///
    /// # Errors
    /// The daemon has died.
    pub async fn relayed(&self, number: u64) -> io::Result<Framed<UnixStream>> {
        self.relaying(FromAgent::Relayed(number)).await
    }

    async fn relaying(&self, first: FromAgent) -> io::Result<Framed<UnixStream>> {
        let mut stream = UnixStream::connect(&self.0.socket).await?;
        send(&mut stream, &first).await?;
        Ok(Framed::new(stream))
    }

    /// Waits until there is a daemon that can have connections move. `None`: none has come in time.
    pub async fn mover(&self) -> Option<Mover<'_>> {
        let connection = self.0.present().await?;
        let shared = &self.0;
        Some(Mover { shared, connection })
    }
}

impl Mover<'_> {
    /// Has a connection move. `left` ends when its socket has ended. Returns whether it has left.
    ///
    /// # Errors
    /// The daemon says nothing for very long, and may yet move the connection.
    pub async fn move_to(
        &self,
        next: Ipv4Addr,
        moving: Moving,
        left: impl Future<Output = ()>,
    ) -> io::Result<bool> {
        let Self { shared, connection } = *self;
        let mut asking = shared.asking();
        let number = asking.number;
        let message = FromAgent::Move(number, next, moving);
        shared.say(message, connection).await;
        let mut left = pin!(left);
        tokio::select! {
            biased;
            () = &mut left => {
                shared.say(FromAgent::Left(number), connection).await;
                return Ok(true);
            }
            _ = &mut asking.stays => (),
            // A daemon that has died may have moved it.
            () = shared.gone(connection) => (),
            () = sleep(PATIENCE) => return Err(io::ErrorKind::TimedOut.into()),
        }
        // It may have left in the last moment.
        Ok(timeout(Duration::ZERO, left).await.is_ok())
    }
}

/// The connection to the daemon.
struct Link {
    build: String,
    /// Without a bound, so that answers are heard while the process is busy; other nodes have few questions under way.
    told: mpsc::UnboundedSender<ToAgent>,
    ticket_keys: watch::Receiver<TicketKeyRing>,
    shared: Arc<Shared>,
}

impl Link {
    /// Connects, again and again, for as long as the process lives.
    async fn run(self, mut waiting: mpsc::Receiver<Waiting>) {
        for connection in 1.. {
            if let Ok(stream) = UnixStream::connect(&self.shared.socket).await {
                self.shared.connected.send_replace(Some(connection));
                let (mut from, to) = stream.into_split();
                let hearing = async {
                    while let Ok(Some(message)) = receive(&mut from).await {
                        self.hear(message);
                    }
                };
                tokio::select! {
                    () = hearing => (),
                    _ = self.speak(connection, to, &mut waiting) => (),
                }
                self.shared.connected.send_replace(None);
            }
            sleep(AGAIN).await;
        }
    }

    async fn speak(
        &self,
        connection: u64,
        mut to: OwnedWriteHalf,
        waiting: &mut mpsc::Receiver<Waiting>,
    ) -> io::Result<()> {
        send(&mut to, &FromAgent::Hello(self.build.clone())).await?;
        let mut keys = self.ticket_keys.clone();
        keys.mark_changed();
        loop {
            let message = tokio::select! {
                biased;
                Ok(()) = keys.changed() => FromAgent::TicketKeys(keys.borrow_and_update().clone()),
                Some(waiting) = waiting.recv() => {
                    if waiting.connection != connection {
                        continue;
                    }
                    waiting.message
                }
                else => return Ok(()),
            };
            send(&mut to, &message).await?;
        }
    }

    fn hear(&self, message: ToAgent) {
        match message {
            ToAgent::Stays(number) => {
                let asked = locked(&self.shared.asked).remove(&number);
                if let Some(asked) = asked {
                    // Who has asked may have ended.
                    let _ = asked.send(());
                }
            }
            // The receiver lives as long as the process.
            other => drop(self.told.send(other)),
        }
    }
}
