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
    sync::{mpsc, watch},
};
use tracing::debug;

use super::{
    context::AgentContext,
    moves::{self, NO, YES},
};
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
    /// Who waits for the process's answers to which question.
    asked: Mutex<HashMap<u64, mpsc::Sender<u8>>>,
    /// The number of the next question. Links of this process to earlier daemons had others, to which it may still answer.
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
            next: AtomicU64::new(fastrand::u64(..)),
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
            // Now it can be asked nothing more.
            messages.close();
            locked(&shared.asked).clear();
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

    /// Passes on a question of another daemon to the process, which answers it.
    pub fn ask(&self, question: Question) {
        let Some(moving) = moves::read_question(&question.text) else {
            return;
        };
        // Who has asked may have lost patience while this waited.
        if question.answers.is_closed() {
            return;
        }
        let shared = &self.shared;
        shared.context.end_move(moving.ends);
        let number = shared.next.fetch_add(1, Relaxed);
        locked(&shared.asked).insert(number, question.answers);
        // One that has ended, or is too busy, takes no session.
        if (shared.to.try_send(ToAgent::Take(number, moving))).is_err() {
            locked(&shared.asked).remove(&number);
        }
    }
}

impl Shared {
    /// Passes on an answer of the process to a question of another daemon, which has no further answers if this `is_last`.
    fn answer(&self, number: u64, yes: bool, is_last: bool) {
        let mut asked = locked(&self.asked);
        let answers = match is_last {
            true => asked.remove(&number),
            false => asked.get(&number).cloned(),
        };
        if let Some(answers) = answers {
            // Who has asked may have lost patience.
            let _ = answers.try_send(if yes { YES } else { NO });
        }
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
        FromAgent::Taken(number, yes) => shared.answer(number, yes, !yes),
        FromAgent::Arrived(number, has_come) => shared.answer(number, has_come, true),
    }
}
