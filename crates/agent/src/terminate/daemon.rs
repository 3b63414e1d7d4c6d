//! The daemon of this data server, as the connections of the process know it.
//!
//! The process connects to the daemon's socket, and connects again when a daemon that has died is back. Questions that
//! no daemon has answered wait until then.

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
use super::messages::{FromAgent, Judgement, Moving, ToAgent, receive, send};
use crate::client::Ends;

/// The time between two tries to connect to the daemon.
const AGAIN: Duration = Duration::from_millis(50);
/// A request waits this long for a daemon that judges it.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many messages may wait to be sent.
const WAITING: usize = 1024;

/// The handle with which connections ask the daemon.
#[derive(Clone)]
pub(super) struct Daemon(Arc<Shared>);

struct Shared {
    socket: PathBuf,
    messages: mpsc::Sender<FromAgent>,
    /// Who waits for the answer to which question.
    asked: Mutex<HashMap<u64, oneshot::Sender<Answer>>>,
    next: AtomicU64,
    /// Whether there is a connection to a daemon, and which it is.
    connected: watch::Sender<u64>,
}

enum Answer {
    Judged(Judgement),
    Stays,
}

/// A question under way. It is forgotten when this is dropped.
struct Asking<'a> {
    shared: &'a Shared,
    number: u64,
    answer: oneshot::Receiver<Answer>,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        locked(&self.shared.asked).remove(&self.number);
    }
}

impl Shared {
    fn asking(&self) -> Asking<'_> {
        let number = self.next.fetch_add(1, Relaxed);
        let (sender, answer) = oneshot::channel();
        locked(&self.asked).insert(number, sender);
        Asking {
            shared: self,
            number,
            answer,
        }
    }

    /// Waits until there is a connection to another daemon than the one that was connected `before`.
    async fn another(&self, before: u64) {
        let mut connected = self.connected.subscribe();
        // The sender lives as long as this.
        let _ = connected.wait_for(|now| *now != before).await;
    }

    async fn say(&self, message: FromAgent) {
        // The receiver lives as long as the process.
        let _ = self.messages.send(message).await;
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
            connected: watch::Sender::new(0),
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

    /// Says something that is no question.
    pub async fn say(&self, message: FromAgent) {
        self.0.say(message).await;
    }

    /// Says something that may as well be lost, as it is while there is no daemon.
    pub fn tell(&self, message: FromAgent) {
        if self.0.messages.capacity() > WAITING / 2 {
            // There is room, unless somebody else has just taken it.
            let _ = self.0.messages.try_send(message);
        }
    }

    /// Asks which data server is to answer the request with this head. Without a daemon the request waits for one.
    pub async fn judge(&self, ends: Ends, head: &[u8]) -> Judgement {
        let judging = async {
            loop {
                let before = *self.0.connected.borrow();
                let mut asking = self.0.asking();
                let question = FromAgent::Judge(asking.number, ends, head.to_vec());
                self.0.say(question).await;
                tokio::select! {
                    answer = &mut asking.answer => if let Ok(Answer::Judged(judgement)) = answer {
                        return judgement;
                    },
                    // The daemon that was asked has died: the next one is asked.
                    () = self.0.another(before) => (),
                }
            }
        };
        timeout(PATIENCE, judging)
            .await
            .unwrap_or(Judgement::Nobody)
    }

    /// Opens the way to another data server's agent, for requests of this client's connection.
    ///
    /// # Errors
    /// There is no daemon. If the other agent cannot be reached, the connection ends.
    pub async fn relay(&self, next: Ipv4Addr, ends: Ends) -> io::Result<Framed<UnixStream>> {
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

    /// Has a connection move. `left` ends when its socket has ended. Returns whether it has left.
    pub async fn move_to(
        &self,
        next: Ipv4Addr,
        moving: Moving,
        left: impl Future<Output = ()>,
    ) -> bool {
        let mut asking = self.0.asking();
        let number = asking.number;
        self.0.say(FromAgent::Move(number, next, moving)).await;
        let before = *self.0.connected.borrow();
        let mut left = pin!(left);
        tokio::select! {
            biased;
            () = &mut left => {
                self.0.say(FromAgent::Left(number)).await;
                return true;
            }
            _ = &mut asking.answer => (),
            // A daemon that has died may have moved it.
            () = self.0.another(before) => (),
            () = sleep(PATIENCE) => (),
        }
        // It may have left in the last moment.
        timeout(Duration::ZERO, left).await.is_ok()
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
    async fn run(self, mut waiting: mpsc::Receiver<FromAgent>) {
        loop {
            if let Ok(stream) = UnixStream::connect(&self.shared.socket).await {
                self.shared.connected.send_modify(|count| *count += 1);
                let (mut from, to) = stream.into_split();
                let hearing = async {
                    while let Ok(Some(message)) = receive(&mut from).await {
                        self.hear(message);
                    }
                };
                tokio::select! {
                    () = hearing => (),
                    _ = self.speak(to, &mut waiting) => (),
                }
            }
            sleep(AGAIN).await;
        }
    }

    async fn speak(
        &self,
        mut to: OwnedWriteHalf,
        waiting: &mut mpsc::Receiver<FromAgent>,
    ) -> io::Result<()> {
        send(&mut to, &FromAgent::Hello(self.build.clone())).await?;
        let mut keys = self.ticket_keys.clone();
        keys.mark_changed();
        loop {
            let message = tokio::select! {
                biased;
                Ok(()) = keys.changed() => FromAgent::TicketKeys(keys.borrow_and_update().clone()),
                Some(message) = waiting.recv() => message,
                else => return Ok(()),
            };
            send(&mut to, &message).await?;
        }
    }

    fn hear(&self, message: ToAgent) {
        let (number, answer) = match message {
            ToAgent::Judged(number, judgement) => (number, Answer::Judged(judgement)),
            ToAgent::Stays(number) => (number, Answer::Stays),
            // The receiver lives as long as the process.
            other => return drop(self.told.send(other)),
        };
        let asked = locked(&self.shared.asked).remove(&number);
        if let Some(asked) = asked {
            // Who has asked may have ended.
            let _ = asked.send(answer);
        }
    }
}
