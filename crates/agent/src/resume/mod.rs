//! Sends the rest of a response that another data server has begun.
//!
//! ```text
//!  order --> the same request to the local server --> its head is read: is it the same response?
//!  client:port <--(cluster address:80, adopted)--> agent <--(client)--> the local server
//!                     where the client is, its socket says: what it has is read away, the rest passed on
//! ```
//!
//! The connection is adopted into a listener of its own with one acknowledgement of the client, so the socket's next
//! byte is exactly the one that the client does not have yet. From there on this is a relay: the client's next requests
//! go to the same server, or the connection moves on like any other.

mod head;
mod ordered;
mod rest;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use baton_net::Result;
use baton_wire::HeadDigest;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

pub use head::{Glimpse, Head, Unfit, glimpse};
pub use ordered::{Found, Order, Outcome};
pub use rest::Witness;

use self::ordered::{Opened, Registered, Responses};
use crate::client::{Ends, Services};
use crate::listener::Listener;
use crate::routing::Routing;
use crate::server::Server;

/// The head of the local server's response must have come within this time, which is shorter than the time that the
/// node which ordered it waits.
const PATIENCE: Duration = Duration::from_secs(4);
/// How long a response waits for its connection: a client may be away for a while.
const KEEP: Duration = Duration::from_secs(120);
/// For this long after an order was taken back, a late copy of that order has no effect.
const TAKEN_BACK: Duration = Duration::from_secs(10);

/// A connection that has come for its response: its ends, the number of the order, and the response.
pub type Beginning = (Ends, u64, Found);

/// The receiver of connections that have come for their responses.
pub type Beginnings = mpsc::UnboundedReceiver<Beginning>;

baton_core::shared_counters! {
    /// Counts what was done, for the metrics.
    pub struct Counters("agent_") {
        /// Orders that were accepted.
        ordered,
        /// Connections that came for their response.
        begun,
        /// Connections that were reset because nothing was ordered for them, or too late.
        foreign,
        /// Connections that were reset because the client is not where the response is, or one of the two connections
        /// broke.
        failed,
        /// Connections that came to a regular end in both directions.
        finished,
    }
}

/// Takes orders for responses. All its clones share the same listener and the same orders.
#[derive(Clone)]
pub struct Resumer {
    shared: Arc<Shared>,
    port: u16,
}

struct Shared {
    server: Server,
    witness: Witness,
    responses: Responses,
    begun: mpsc::UnboundedSender<Beginning>,
    counters: Arc<Counters>,
}

impl Resumer {
    /// Listens on 127.0.0.1, at a port of the kernel's choice, and works until the runtime ends. The receiver yields
    /// each connection that has come for its response, with the number of the order.
    ///
    /// # Errors
    /// [`baton_net::Error::System`].
    pub fn start(
        routing: &Routing,
        services: watch::Receiver<Services>,
        witness: Witness,
    ) -> Result<(Self, Beginnings)> {
        let listener = Listener::bind("resumed responses")?;
        let port = listener.port();
        let (begun, beginnings) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            server: Server::Here(routing.mark),
            witness,
            responses: Responses::default(),
            begun,
            counters: Arc::default(),
        });
        let serving = Arc::clone(&shared);
        tokio::spawn(async move {
            let serve = |client| {
                let ends = Ends::of(&client, &services);
                serve(client, ends, Arc::clone(&serving))
            };
            listener.accept(serve).await;
        });
        Ok((Self { shared, port }, beginnings))
    }

    /// The port of the listener, for `settings.resume_port` of the data server program.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The counters, which stay readable.
    pub fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.shared.counters)
    }

    /// Gets the response from the local server. If the same order comes again, this says what has become of it; another
    /// order for the same connection takes its place. `None`: the same order is still being answered, or was taken
    /// back.
    pub async fn order(&self, order: &Order) -> Option<Outcome> {
        if order.request.is_empty() {
            if let Some(number) = order.digest.map(HeadDigest::value) {
                self.shared.responses.take_back(order.ends, number);
                self.later(TAKEN_BACK, order.ends, number, Responses::forget);
            }
            return Some(Outcome::Unreachable);
        }
        match self.shared.responses.register(order) {
            Registered::New => {}
            Registered::Known(outcome) => return outcome,
        }
        self.shared.counters.ordered.fetch_add(1, Relaxed);
        let outcome = match timeout(PATIENCE, self.shared.fetch(order)).await {
            Ok(Ok(Ok((found, opened)))) => self.shared.responses.keep(order, found, opened),
            Ok(Ok(Err(unfit))) => Outcome::Unfit(unfit),
            Ok(Err(error)) => {
                tracing::debug!(%error, "the local server does not answer");
                Outcome::Unreachable
            }
            Err(_) => Outcome::Unreachable,
        };
        match outcome {
            Outcome::Ready(_) => {
                self.later(KEEP, order.ends, order.number, Responses::give_up);
            }
            _ => self.shared.responses.forget(order.ends, order.number),
        }
        Some(outcome)
    }

    fn later(&self, after: Duration, ends: Ends, number: u64, what: fn(&Responses, Ends, u64)) {
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move {
            sleep(after).await;
            what(&shared.responses, ends, number);
        });
    }
}

impl Shared {
    /// Gets the local server's answer, as far as its head, if that is the head of the response that the client has
    /// begun to get.
    async fn fetch(
        &self,
        order: &Order,
    ) -> io::Result<std::result::Result<(Found, Opened), Unfit>> {
        let mut server = self.server.connect(order.ends).await?;
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
}

async fn serve(client: TcpStream, ends: Option<Ends>, shared: Arc<Shared>) {
    let counters = Arc::clone(&shared.counters);
    let Some((ends, taken)) = ends.and_then(|ends| Some((ends, shared.responses.take(ends)?)))
    else {
        counters.foreign.fetch_add(1, Relaxed);
        return;
    };
    counters.begun.fetch_add(1, Relaxed);
    // Nobody receives this anymore only when the daemon ends, and then this task ends too.
    let _ = shared.begun.send((ends, taken.number, taken.found));
    let number = taken.number;
    let result = rest::pass_on(
        client,
        taken.start,
        taken.found,
        taken.opened,
        &shared.witness,
    )
    .await;
    shared.responses.forget(ends, number);
    match result {
        Ok(()) => counters.finished.fetch_add(1, Relaxed),
        Err(error) => {
            tracing::debug!(%error, "a resumed connection failed");
            counters.failed.fetch_add(1, Relaxed)
        }
    };
}
