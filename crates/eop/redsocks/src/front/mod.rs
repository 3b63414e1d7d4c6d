//! The front before servers that know nothing of EOP.
//!
//! One port serves clients of both kinds. Clients that speak EOP are redirected to another server, or the bytes of
//! their messages are relayed to the server behind this front. Plain clients are relayed, or redirected by HTTP (307).
//!
//! | there is | an EOP client | a plain one |
//! |---|---|---|
//! | a server behind | is served here | is served here |
//! | other fronts | is redirected to one, at once | is relayed to one, or gets a 307 |
//! | both | is served here until this front drains, or under a policy by path goes where its request belongs | the same, by 307 only |
//!
//! **When a session can move.** At its beginning it always can: the client's bytes have gone nowhere yet. Later it can
//! move between two requests of HTTP/1, if [`Turns`](eop_protocol::turns::Turns) can tell where they end. The redirect
//! says how many of the client's bytes are answered.

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

/// The options of a front.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address and port that clients connect to.
    pub listen: SocketAddr,
    /// The servers that serve clients.
    pub servers: Servers,
    /// How one of several servers is chosen.
    pub policy: Policy,
    /// What becomes of plain clients that belong to another server.
    pub plain: Plain,
    /// The key that makes and checks the tokens of redirected clients. All fronts that redirect to each other need the
    /// same.
    pub key: Option<EopKey>,
    /// Whether only clients are served that were redirected here, as their token shows. Then no plain client is
    /// served, and without `key` no client at all.
    pub redirected_only: bool,
    /// How long a client may be silent before the front connects to the server, which may want to speak first.
    pub patience: Duration,
}

/// The servers that serve clients.
#[derive(Clone, Debug)]
pub enum Servers {
    /// The server behind this front.
    Behind(SocketAddr),
    /// Other servers. There must be at least one, or clients are reset.
    Others(Vec<Target>),
    /// The server behind this front for as long as it can serve, and others.
    Both(SocketAddr, Vec<Target>),
}

/// What becomes of plain clients that belong to another server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Plain {
    /// Their bytes are relayed.
    #[default]
    Relay,
    /// Clients of HTTP/1 get a 307; the bytes of others are relayed.
    Location {
        /// How long a client may go to the other server by itself, as Alt-Svc tells it (RFC 7838). `None`: the
        /// response has no Alt-Svc.
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
    options: Options,
    behind: Option<SocketAddr>,
    by_path: bool,
    has_others: bool,
    targets: Mutex<Targets>,
    epoch: Instant,
    counters: Arc<Counters>,
    drains: watch::Receiver<bool>,
}

/// How long a client that was redirected may take to close its connection.
const LINGER: Duration = Duration::from_secs(5);
const CONNECT: Duration = Duration::from_secs(5);
const BACKLOG: i32 = 1024;

impl Front {
    /// Listens at an address. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// The system's error if the address cannot be listened on.
    pub fn bind(options: Options) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(options.listen), Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        // Accepted sockets inherit this option.
        socket.set_tcp_nodelay(true)?;
        let announced = ulp::announce(&socket);
        socket.bind(&options.listen.into())?;
        socket.listen(BACKLOG)?;
        let (behind, others) = match options.servers.clone() {
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
                options,
                behind,
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

    /// The address that the front listens on.
    ///
    /// # Errors
    /// The system's error if it does not tell the address.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The front's counters, which stay readable while it runs.
    pub fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.shared.counters)
    }

    /// Serves clients until `drain` is done. From then on no new client is accepted, EOP clients are redirected as
    /// soon as they can be, and all others are served to their end.
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
                    // The error concerns one client, or there are no descriptors at the moment.
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
        // This cannot fail, because `shared` has a receiver.
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

    /// The other server that a client of `here` belongs to. `None`: the client is served here, or nowhere. `path` is
    /// that of the client's request, if it is known.
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
            // If no server could want to speak first, there is no hurry.
            let waits = shared.behind.is_none() && shared.options.plain != Plain::Relay;
            sniff(&mut stream, (!waits).then_some(shared.options.patience)).await?
        };
        match first {
            Client::Eop(first) => {
                counters.eop.add();
                eop::serve(shared, &mut stream, here, from, first, agreed, since).await
            }
            Client::Plain(first) => {
                counters.plain.add();
                if shared.options.redirected_only {
                    SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
                    return Err(Refused::Missing.into());
                }
                plain::serve(&shared, &mut stream, here, from, first, since).await
            }
            Client::Gone => Ok(()),
        }
    };
    if let Err(error) = result.await {
        // The error is counted before `stream` is dropped, which resets the connection: whoever sees the reset finds
        // it counted.
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

/// Reads and throws away what the client still sends, until the client closes the connection. By then it has read the
/// last bytes of this end, which a reset could take from it.
async fn linger(stream: &mut TcpStream) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut away = vec![0; 16 << 10];
    let until_closed = async {
        let _ = stream.shutdown().await;
        while matches!(stream.read(&mut away).await, Ok(1..)) {}
    };
    // A client that takes longer is reset.
    let _ = tokio::time::timeout(LINGER, until_closed).await;
}
