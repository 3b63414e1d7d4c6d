//! Before servers that know nothing of EOP.
//!
//! One port serves clients of both kinds. Those that speak EOP are sent to another server, or their messages'
//! bytes are relayed to the server behind this front. Plain ones are relayed, or get the same by HTTP: a 307.
//!
//! | there is | an EOP client | a plain one |
//! |---|---|---|
//! | a server behind | is served here | is served here |
//! | other fronts | is redirected to one, at once | is relayed to one, or gets a 307 |
//! | both | is served here until this front drains, or under a policy by path goes where its request belongs | the same, by 307 only |
//!
//! **When a session can move.** At its beginning always: the client's bytes have gone nowhere yet. Later between
//! two requests of HTTP/1, where [`Turns`](eop_protocol::turns::Turns) can tell. The redirect says how many of the client's bytes are answered.

mod counters;
mod eop;
mod plain;
mod sniff;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use baton_core::Moment;
use baton_core::policy::Policy;
use eop_protocol::wire::{EopKey, Refused};
use eop_protocol::{Target, Targets};
use socket2::{Domain, SockRef, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::debug;

pub use counters::{Counters, Latency};
use eop::Failed;
use sniff::{Client, sniff};

use crate::ulp;

/// What a front is told.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where clients come.
    pub listen: SocketAddr,
    /// Who serves.
    pub servers: Servers,
    /// How one of several is chosen.
    pub policy: Policy,
    /// What becomes of plain clients whose place is elsewhere.
    pub plain: Plain,
    /// Makes and checks tokens of redirected clients; all fronts that redirect to each other have the same.
    pub key: Option<EopKey>,
    /// Serve only clients that were redirected here, as their token shows: nobody without `key`, and no plain one.
    pub redirected_only: bool,
    /// How long a client may be silent before the server is connected, which may want to speak first.
    pub patience: Duration,
}

/// Who serves.
#[derive(Clone, Debug)]
pub enum Servers {
    /// The server behind this front.
    Behind(SocketAddr),
    /// Others; at least one, else clients are reset.
    Others(Vec<Target>),
    /// It, as long as it can, and others.
    Both(SocketAddr, Vec<Target>),
}

/// What becomes of plain clients whose place is elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Plain {
    /// Their bytes are carried.
    #[default]
    Relay,
    /// Those of HTTP/1 are told, by 307; others' bytes are carried.
    Location {
        /// For so long they may go there themselves, as Alt-Svc says (RFC 7838); `None`: it says nothing.
        alternative: Option<Duration>,
    },
}

/// A front that listens.
#[derive(Debug)]
pub struct Front {
    listener: TcpListener,
    announced: bool,
    shared: Arc<Shared>,
    drains: watch::Sender<bool>,
}

#[derive(Debug)]
struct Shared {
    behind: Option<SocketAddr>,
    plain: Plain,
    key: Option<EopKey>,
    redirected_only: bool,
    patience: Duration,
    by_path: bool,
    has_others: bool,
    targets: Mutex<Targets>,
    epoch: Instant,
    counters: Arc<Counters>,
    drains: watch::Receiver<bool>,
}

/// How long a client that was redirected may take to close.
const LINGER: Duration = Duration::from_secs(5);
const CONNECT: Duration = Duration::from_secs(5);
const BACKLOG: i32 = 1024;

impl Front {
    /// Listens. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// The system's.
    pub fn bind(options: Options) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(options.listen), Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        // Accepted sockets have it from here.
        socket.set_tcp_nodelay(true)?;
        let announced = ulp::announce(&socket);
        socket.bind(&options.listen.into())?;
        socket.listen(BACKLOG)?;
        let (behind, others) = match options.servers {
            Servers::Behind(server) => (Some(server), Vec::new()),
            Servers::Others(others) => (None, others),
            Servers::Both(server, others) => (Some(server), others),
        };
        let (sender, drains) = watch::channel(false);
        let has_others = !others.is_empty();
        let targets = Targets::new(options.policy, others);
        Ok(Self {
            listener: TcpListener::from_std(socket.into())?,
            announced,
            shared: Arc::new(Shared {
                behind,
                plain: options.plain,
                key: options.key,
                redirected_only: options.redirected_only,
                patience: options.patience,
                by_path: has_others && targets.by_path(),
                has_others,
                targets: Mutex::new(targets),
                epoch: Instant::now(),
                counters: Arc::default(),
                drains,
            }),
            drains: sender,
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system's.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// What it has done; stays readable while it runs.
    pub fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.shared.counters)
    }

    /// Serves until `drain` is done: then nobody new is taken, EOP clients are redirected as soon as they can be,
    /// and all others are served to their end.
    pub async fn serve(self, drain: impl Future<Output = ()>) {
        let mut sessions = JoinSet::new();
        tokio::pin!(drain);
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, from)) => {
                        let agreed = self.announced && ulp::agreed(&stream);
                        sessions.spawn(session(Arc::clone(&self.shared), stream, from, agreed));
                    }
                    // Of one client, or there are no descriptors for now.
                    Err(error) => {
                        debug!(%error, "accepting");
                        tokio::time::sleep(Duration::from_millis(10)).await;
                    }
                },
                Some(_) = sessions.join_next() => {}
                () = &mut drain => break,
            }
        }
        drop(self.listener);
        // The receiver lives in `shared`.
        let _ = self.drains.send(true);
        while sessions.join_next().await.is_some() {}
    }
}

impl Shared {
    fn now(&self) -> Moment {
        Moment::after_epoch(self.epoch.elapsed())
    }

    fn is_draining(&self) -> bool {
        *self.drains.borrow()
    }

    fn choose(&self, client: IpAddr, path: &[u8], without: &[SocketAddr]) -> Option<SocketAddr> {
        let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        targets.choose(self.now(), client, path, without)
    }

    fn is_down(&self, server: SocketAddr) {
        let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        targets.handle_down(self.now(), server);
    }

    /// Where a client of `here` belongs that is not served here; `None`: it is served here, or nowhere.
    /// `path`: of its request, if that is known.
    fn elsewhere(
        &self,
        here: SocketAddr,
        client: IpAddr,
        path: Option<&[u8]>,
        without: &[SocketAddr],
    ) -> Option<SocketAddr> {
        if !self.has_others {
            return None;
        }
        if self.is_draining() || self.behind.is_none() {
            let without = [without, &[here]].concat();
            return self.choose(client, path.unwrap_or_default(), &without);
        }
        let path = path.filter(|_| self.by_path)?;
        let chosen = self.choose(client, path, without)?;
        (chosen != here).then_some(chosen)
    }
}

async fn session(shared: Arc<Shared>, mut stream: TcpStream, from: SocketAddr, agreed: bool) {
    let since = Instant::now();
    let counters = Arc::clone(&shared.counters);
    let result = async {
        let here = stream.local_addr()?;
        let first = if agreed {
            Client::Eop(Vec::new())
        } else {
            // Where nobody is behind who could want to speak first, there is time.
            let waits = shared.behind.is_none() && shared.plain != Plain::Relay;
            sniff(&mut stream, (!waits).then_some(shared.patience)).await?
        };
        match first {
            Client::Eop(first) => {
                counters.eop.add();
                eop::serve(shared, &mut stream, here, from, first, agreed, since).await
            }
            Client::Plain(first) => {
                counters.plain.add();
                if shared.redirected_only {
                    SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
                    return Err(Refused::Missing.into());
                }
                plain::serve(&shared, &mut stream, here, from, first, since).await
            }
            Client::Gone => Ok(()),
        }
    };
    if let Err(error) = result.await {
        // The connection is reset when `stream` is dropped: whoever sees the reset finds it counted.
        match error {
            Failed::Refused(_) => counters.refused.add(),
            _ => counters.reset.add(),
        }
        debug!(%from, %error, "a client is reset");
    }
}

async fn connect(to: SocketAddr) -> io::Result<TcpStream> {
    let stream = tokio::time::timeout(CONNECT, TcpStream::connect(to))
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Reads and throws away what the client still sends until it closes: it must have read our last word, which a
/// reset would take from it.
async fn linger(stream: &mut TcpStream) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut away = vec![0; 16 << 10];
    let until_closed = async {
        let _ = stream.shutdown().await;
        while matches!(stream.read(&mut away).await, Ok(1..)) {}
    };
    // Who takes longer is reset.
    let _ = tokio::time::timeout(LINGER, until_closed).await;
}
