//! The agent of a data server: gets the rest of a response that another one has begun.
//!
//! ```text
//!  order --> the same request to the local server --> its head is read: is it the same response?
//!  client:port <--(cluster address:80, adopted)--> agent <--(client:port, on lo)--> 127.0.0.1:80
//!                     where the client is, its socket says: what it has is read away, the rest passed on
//! ```
//!
//! The connection is adopted into the agent's own listener with one acknowledgement of the client, so the
//! socket's next byte is exactly the one that the client does not have yet. From there on this is a relay:
//! what the client asks next goes to the same server, or the connection moves on, as any other.

mod head;
mod position;
mod stream;

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use baton_abi::{RESPONSE_BODY, RESPONSE_COMPLETE, Response};
use baton_wire::HeadDigest;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

pub use head::{Glimpse, Head, Unfit, glimpse};

use crate::relay::{Routing, Services, connect_as, reset};
use crate::{Error, Result};

/// How long the local server may take until the head of its response is there: less than who ordered it waits.
const PATIENCE: Duration = Duration::from_secs(4);
/// How long a response waits for its connection: a client may be away for a while.
const KEEP: Duration = Duration::from_secs(120);
/// How long an order that was taken back may come again.
const TAKEN_BACK: Duration = Duration::from_secs(10);
/// So many responses may wait at once.
const WAITING: usize = 4096;

/// Hears how each response goes on, before any of it leaves: nobody else sees where it ends.
pub type Witness = Box<dyn Fn(BorrowedFd<'_>, &Response) + Send + Sync>;

/// Which connection: the client's end, and the cluster's.
pub type Ends = (SocketAddrV4, SocketAddrV4);

/// A connection that has come for its response: which, the order's number, and the response.
pub type Beginning = (Ends, u64, Found);

/// Where these come out.
pub type Beginnings = mpsc::UnboundedReceiver<Beginning>;

/// What is wanted.
#[derive(Clone, Debug)]
pub struct Order {
    /// Whose response.
    pub ends: Ends,
    /// Tells this order from others about the same connection.
    pub number: u64,
    /// What the client asked for, as it sent it. Empty: the order whose number stands in `digest` is taken
    /// back, if its connection has not come.
    pub request: Vec<u8>,
    /// Sequence number of the response's first byte.
    pub start: u32,
    /// The client has at least what comes before this one.
    pub acknowledged: u32,
    /// What is known of the response's head.
    pub digest: Option<HeadDigest>,
    /// And of the length of all of it.
    pub length: Option<u64>,
}

/// What has become of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The response is here, and waits for its connection.
    Ready(Found),
    /// And the connection has come.
    Begun(Found),
    /// The client has all of it.
    Complete(Found),
    /// It is not the same, or nobody can tell.
    Unfit(Unfit),
    /// The local server does not answer.
    Unreachable,
    /// Too many wait.
    Full,
}

/// The response that is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// What tells its head from others.
    pub digest: HeadDigest,
    /// Head and body, bytes.
    pub length: u64,
}

/// What an agent has done, for the metrics.
#[derive(Debug, Default)]
pub struct Counters {
    /// Orders.
    pub ordered: AtomicU64,
    /// Connections that came for their response.
    pub begun: AtomicU64,
    /// Connections that nothing was ordered for, or too late. Reset.
    pub foreign: AtomicU64,
    /// The client is not where the response is, or one of the connections broke. Reset.
    pub failed: AtomicU64,
    /// Came to a regular end in both directions.
    pub finished: AtomicU64,
}

/// Takes orders. Cloned, it is the same agent.
#[derive(Clone)]
pub struct Agent {
    shared: Arc<Shared>,
    port: u16,
}

struct Shared {
    mark: u32,
    witness: Witness,
    responses: Mutex<HashMap<Ends, Ordered>>,
    begun: mpsc::UnboundedSender<Beginning>,
    counters: Arc<Counters>,
}

/// A response that was ordered, and where it is by now.
#[derive(Debug)]
struct Ordered {
    number: u64,
    start: u32,
    state: State,
}

#[derive(Debug)]
enum State {
    Asking,
    Waiting(Found, Box<Opened>),
    Begun(Found),
    TakenBack,
}

/// The local server's answer, of which this much was read.
#[derive(Debug)]
struct Opened {
    server: TcpStream,
    read: Vec<u8>,
}

impl Agent {
    /// Listens on 127.0.0.1, at a port of the kernel's choice, and runs until the runtime ends. Connections
    /// that have come for their responses come out of the receiver, with the number of the order.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn start(
        routing: &Routing,
        services: watch::Receiver<Services>,
        witness: Witness,
    ) -> Result<(Self, Beginnings)> {
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let listen = || -> io::Result<(TcpListener, u16)> {
            let listener = std::net::TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            let listener = TcpListener::from_std(listener)?;
            let port = listener.local_addr()?.port();
            Ok((listener, port))
        };
        let (listener, port) =
            listen().map_err(Error::system("listen on 127.0.0.1 for resumed responses"))?;
        let (begun, beginnings) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            mark: routing.mark,
            witness,
            responses: Mutex::default(),
            begun,
            counters: Arc::default(),
        });
        tokio::spawn(accept(listener, Arc::clone(&shared), services));
        Ok((Self { shared, port }, beginnings))
    }

    /// The port it listens on, for `settings.resume_port` of the data server program.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What it has done; stays readable.
    pub fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.shared.counters)
    }

    /// Gets the response. The same order again says what has become of it; another one for the same
    /// connection takes its place. `None`: an answer to the same order is under way.
    pub async fn order(&self, order: &Order) -> Option<Outcome> {
        if order.request.is_empty() {
            if let Some(number) = order.digest.map(HeadDigest::value) {
                self.shared.take_back(order.ends, number);
                self.later(TAKEN_BACK, order.ends, number, Shared::forget);
            }
            return Some(Outcome::Unreachable);
        }
        match self.shared.register(order) {
            Registered::New => {}
            Registered::Known(outcome) => return outcome,
        }
        self.shared.counters.ordered.fetch_add(1, Relaxed);
        let outcome = match timeout(PATIENCE, self.shared.fetch(order)).await {
            Ok(Ok(Ok((found, opened)))) => self.shared.keep(order, found, opened),
            Ok(Ok(Err(unfit))) => Outcome::Unfit(unfit),
            Ok(Err(error)) => {
                tracing::debug!(%error, "the local server does not answer");
                Outcome::Unreachable
            }
            Err(_) => Outcome::Unreachable,
        };
        match outcome {
            Outcome::Ready(_) => {
                self.later(KEEP, order.ends, order.number, Shared::give_up);
            }
            _ => self.shared.forget(order.ends, order.number),
        }
        Some(outcome)
    }

    fn later(&self, after: Duration, ends: Ends, number: u64, what: fn(&Shared, Ends, u64)) {
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move {
            sleep(after).await;
            what(&shared, ends, number);
        });
    }
}

enum Registered {
    New,
    Known(Option<Outcome>),
}

impl Shared {
    /// The lock is held for a few instructions, never across a wait; what a panicking task left is whole.
    fn responses(&self) -> MutexGuard<'_, HashMap<Ends, Ordered>> {
        self.responses
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn register(&self, order: &Order) -> Registered {
        let mut responses = self.responses();
        if let Some(known) = responses.get(&order.ends)
            && known.number == order.number
        {
            return Registered::Known(match known.state {
                State::Asking | State::TakenBack => None,
                State::Waiting(found, _) => Some(Outcome::Ready(found)),
                State::Begun(found) => Some(Outcome::Begun(found)),
            });
        }
        if responses.len() >= WAITING {
            return Registered::Known(Some(Outcome::Full));
        }
        let response = Ordered {
            number: order.number,
            start: order.start,
            state: State::Asking,
        };
        responses.insert(order.ends, response);
        Registered::New
    }

    async fn fetch(
        &self,
        order: &Order,
    ) -> io::Result<std::result::Result<(Found, Opened), Unfit>> {
        let (client, cluster) = order.ends;
        let mut server = connect_as(client, cluster, self.mark).await?;
        server.set_nodelay(true)?;
        server.write_all(&order.request).await?;
        let mut read = Vec::with_capacity(head::LONGEST);
        let head = loop {
            if server.read_buf(&mut read).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            match Head::read(&order.request, &read) {
                Ok(Some(head)) => break head,
                Ok(None) if read.len() < head::LONGEST => {}
                Ok(None) => return Ok(Err(Unfit::Status)),
                Err(unfit) => return Ok(Err(unfit)),
            }
        };
        let had = order.acknowledged.wrapping_sub(order.start);
        if let Err(unfit) = head.continues(had, order.digest, order.length) {
            return Ok(Err(unfit));
        }
        let found = Found {
            digest: head.digest,
            length: head.length,
        };
        Ok(Ok((found, Opened { server, read })))
    }

    /// Unless another order has taken its place meanwhile.
    fn keep(&self, order: &Order, found: Found, opened: Opened) -> Outcome {
        if u64::from(order.acknowledged.wrapping_sub(order.start)) == found.length {
            return Outcome::Complete(found);
        }
        if let Some(response) = self.responses().get_mut(&order.ends)
            && response.number == order.number
            && matches!(response.state, State::Asking)
        {
            response.state = State::Waiting(found, Box::new(opened));
        }
        Outcome::Ready(found)
    }

    fn forget(&self, ends: Ends, number: u64) {
        let mut responses = self.responses();
        if responses.get(&ends).is_some_and(|r| r.number == number) {
            responses.remove(&ends);
        }
    }

    /// It is not wanted any more, also if the order comes only now, or again. What has begun goes on, and what
    /// was ordered since.
    fn take_back(&self, ends: Ends, number: u64) {
        let mut responses = self.responses();
        let is_other = (responses.get(&ends))
            .is_some_and(|one| one.number != number || matches!(one.state, State::Begun(_)));
        if !is_other {
            let state = State::TakenBack;
            let start = 0;
            responses.insert(
                ends,
                Ordered {
                    number,
                    start,
                    state,
                },
            );
        }
    }

    /// Nobody came for it.
    fn give_up(&self, ends: Ends, number: u64) {
        let waits = matches!(
            self.responses().get(&ends),
            Some(Ordered { number: at, state: State::Waiting(..), .. }) if *at == number
        );
        if waits {
            self.forget(ends, number);
        }
    }

    /// The response that this connection has come for.
    fn take(&self, ends: Ends) -> Option<(u64, u32, Found, Box<Opened>)> {
        let mut responses = self.responses();
        let response = responses.get_mut(&ends)?;
        let State::Waiting(found, _) = response.state else {
            return None;
        };
        let State::Waiting(_, opened) = std::mem::replace(&mut response.state, State::Begun(found))
        else {
            return None;
        };
        Some((response.number, response.start, found, opened))
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, services: watch::Receiver<Services>) {
    loop {
        match listener.accept().await {
            Ok((client, peer)) => {
                let ends = match (peer, client.local_addr()) {
                    (SocketAddr::V4(peer), Ok(SocketAddr::V4(local))) => Some((peer, local)),
                    _ => None,
                };
                // Somebody on this host connected to the listener itself.
                let ends = ends.filter(|(_, local)| services.borrow().contains(local));
                tokio::spawn(serve(client, ends, Arc::clone(&shared)));
            }
            // Out of file descriptors or memory, or the client is gone again: others wait.
            Err(error) => {
                tracing::warn!(%error, "a resumed connection cannot be accepted");
                sleep(Duration::from_millis(10)).await;
            }
        }
    }
}

async fn serve(mut client: TcpStream, ends: Option<Ends>, shared: Arc<Shared>) {
    let counters = Arc::clone(&shared.counters);
    let Some((ends, taken)) = ends.and_then(|ends| Some((ends, shared.take(ends)?))) else {
        counters.foreign.fetch_add(1, Relaxed);
        reset(&client);
        return;
    };
    let (number, start, found, opened) = taken;
    counters.begun.fetch_add(1, Relaxed);
    // Nobody listens any more when the daemon ends, and with it this.
    let _ = shared.begun.send((ends, number, found));
    let result = pass_on(&mut client, start, found, *opened, &shared.witness).await;
    shared.forget(ends, number);
    match result {
        Ok(()) => counters.finished.fetch_add(1, Relaxed),
        Err(error) => {
            tracing::debug!(%error, "a resumed connection failed");
            reset(&client);
            counters.failed.fetch_add(1, Relaxed)
        }
    };
}

/// Reads away what the client has, and passes on the rest and whatever follows it.
async fn pass_on(
    client: &mut TcpStream,
    start: u32,
    found: Found,
    opened: Opened,
    witness: &Witness,
) -> io::Result<()> {
    let Opened { mut server, read } = opened;
    client.set_nodelay(true)?;
    // Below 4 GiB, which the length is too: the difference of two sequence numbers says all of it.
    let (next, asked) = position::next_bytes(client)?;
    let skip = u64::from(next.wrapping_sub(start));
    if skip > found.length {
        return Err(io::Error::other(
            "the client has more than the whole response",
        ));
    }
    let left = found.length - skip;
    let state = if left == 0 {
        RESPONSE_COMPLETE
    } else {
        RESPONSE_BODY
    };
    let rest = Response {
        left,
        next,
        start,
        asked,
        answered: asked,
        state: state as u8, // a byte in C
        responses: 1,
        requests: 1,
        ..Response::default()
    };
    witness(client.as_fd(), &rest);
    stream::go_by_losses(client);
    let here = (read.len() as u64).min(skip);
    stream::read_away(&server, skip - here).await?;
    client.write_all(&read[here as usize..]).await?; // at most read.len()
    let owed = (found.length - skip).saturating_sub(read.len() as u64 - here);
    drop(read);
    let passed = stream::pass_both_ways(client, &mut server, owed).await;
    if passed.is_err() {
        reset(&server);
    }
    passed
}
