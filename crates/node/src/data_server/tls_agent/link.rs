//! The connection between the daemon and one process that speaks TLS.

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use baton_agent::terminate::{
    messages::{FromAgent, ToAgent, receive, send},
    settings::Report,
    tickets::now,
};
use baton_streams::{Opened, Question};
use tokio::{
    net::UnixStream,
    sync::{mpsc, oneshot, watch},
};
use tracing::debug;

use super::{context::AgentContext, moves};
use crate::locked::locked;

/// How many messages may wait to be sent.
const WAITING: usize = 1024;

/// A process that has connected.
pub struct Link {
    /// The build of the process.
    pub build: String,
    /// Whether it has obeyed an order of this daemon.
    pub serves: bool,
    /// Messages to it.
    pub to: mpsc::Sender<ToAgent>,
    /// Its answers to orders. They end with the process.
    pub reports: mpsc::Receiver<Report>,
    shared: Arc<Shared>,
}

struct Shared {
    context: Arc<AgentContext>,
    to: mpsc::Sender<ToAgent>,
    reports: mpsc::Sender<Report>,
    /// The moves under way, by the process's numbers: whether the connection has left its socket.
    moves: Mutex<HashMap<u64, watch::Sender<bool>>>,
    /// Who waits for the process's answer to which question.
    asked: Mutex<HashMap<u64, oneshot::Sender<bool>>>,
    next: AtomicU64,
}

impl Link {
    /// Makes the link of a process that connects. `None`: the connection is none, or was for one relay, and has ended.
    pub async fn accept(mut stream: UnixStream, context: Arc<AgentContext>) -> Option<Self> {
        match receive(&mut stream).await {
            Ok(Some(FromAgent::Hello(build))) => Some(Self::new(build, stream, context)),
            Ok(Some(FromAgent::Relay(next, ends))) => {
                context.relay(stream, next, ends).await;
                None
            }
            Ok(Some(FromAgent::Relayed(number))) => {
                context.relays.connected(number, stream);
                None
            }
            _ => None,
        }
    }

    fn new(build: String, stream: UnixStream, context: Arc<AgentContext>) -> Self {
        let (to, mut messages) = mpsc::channel(WAITING);
        let (report, reports) = mpsc::channel(4);
        let mut news = context.news();
        let shared = Arc::new(Shared {
            context,
            to: to.clone(),
            reports: report,
            moves: Mutex::default(),
            asked: Mutex::default(),
            next: AtomicU64::new(1),
        });
        let link = Self {
            build,
            serves: false,
            to,
            reports,
            shared: Arc::clone(&shared),
        };
        tokio::spawn(async move {
            let (mut from, mut to) = stream.into_split();
            let hearing = async {
                while let Some(message) = receive(&mut from).await? {
                    hear(&shared, message).await;
                }
                io::Result::Ok(())
            };
            let speaking = async {
                loop {
                    // Before its first order, a process is to know what it goes on with.
                    let next = tokio::select! {
                        biased;
                        news = news.next() => news,
                        Some(message) = messages.recv() => vec![message],
                        else => return io::Result::Ok(()),
                    };
                    for message in next {
                        send(&mut to, &message).await?;
                    }
                }
            };
            let ended = tokio::select! {
                ended = hearing => ended,
                ended = speaking => ended,
            };
            if let Err(error) = ended {
                debug!(%error, "a TLS agent is gone");
            }
        });
        link
    }

    /// Has the process serve a channel of another data server.
    pub fn serve(&self, opened: Opened) {
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move {
            let to = shared.to.clone();
            if let Err(error) = shared.context.relays.serve(opened, to).await {
                debug!(%error, "requests of another data server broke off");
            }
        });
    }

    /// Passes on a question of another daemon to the process, and its answer back.
    pub fn ask(&self, question: Question) {
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move {
            let number = shared.next.fetch_add(1, Relaxed);
            let Some(message) = moves::read_question(&question.text, number) else {
                return;
            };
            if let ToAgent::Take(_, moving) = &message {
                shared.context.end_move(moving.ends);
            }
            let (sender, answer) = oneshot::channel();
            locked(&shared.asked).insert(number, sender);
            let Question { answer: mut to, .. } = question;
            let asking = async {
                shared.to.send(message).await.ok()?;
                answer.await.ok()
            };
            let answered = tokio::select! {
                answered = asking => answered,
                () = shared.to.closed() => None,
                () = to.closed() => None,
            };
            if let Some(yes) = answered {
                // Who has asked may have lost patience.
                let _ = to.send(vec![yes.into()]);
            }
            locked(&shared.asked).remove(&number);
        });
    }
}

async fn hear(shared: &Arc<Shared>, message: FromAgent) {
    match message {
        // These begin connections.
        FromAgent::Hello(_) | FromAgent::Relay(..) | FromAgent::Relayed(_) => {}
        FromAgent::Counted(counts) => shared.context.count(counts),
        FromAgent::Report(report) => {
            // Nobody may wait for it anymore.
            let _ = shared.reports.try_send(report);
        }
        FromAgent::Move(number, next, moving) => {
            let shared = Arc::clone(shared);
            let (sender, mut left) = watch::channel(false);
            locked(&shared.moves).insert(number, sender);
            tokio::spawn(async move {
                tokio::select! {
                    has_left = shared.context.move_to(next, &moving, &mut left) => if !has_left {
                        let _ = shared.to.send(ToAgent::Stays(number)).await;
                    },
                    // The process takes the connection for one that stays, so it must not be moved later.
                    () = shared.to.closed() => shared.context.end_move(moving.ends),
                }
                locked(&shared.moves).remove(&number);
            });
        }
        FromAgent::TicketKeys(ring) => {
            let known = &shared.context.ticket_keys;
            known.send_if_modified(|known| known.merge(ring, now()));
        }
        FromAgent::Left(number) => {
            if let Some(left) = locked(&shared.moves).get(&number) {
                left.send_replace(true);
            }
        }
        FromAgent::Taken(number, yes) => {
            let asked = locked(&shared.asked).remove(&number);
            if let Some(asked) = asked {
                let _ = asked.send(yes);
            }
        }
    }
}
