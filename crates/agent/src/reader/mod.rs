//! Reads requests that one packet does not decide: heads in several segments, targets that need normalising, old
//! spellings.
//!
//! ```text
//!  client --part of a head--> this agent's socket, adopted where the request begins
//!  client --the rest of it--> the same; nothing is taken out of it, and nothing is said
//!  agent  --the request, as frames of the client--> the data server's program --here--> the local server's socket
//!                                                                             \-------> another data server
//! ```
//!
//! The agent has a connection for milliseconds. Nothing of a response has been sent, so the connection is as quiet as
//! it was before the request's first byte. Therefore the program can let it go on from there, with another socket
//! (`bpf/data_server/agent/reader.h`). What has been acknowledged to the client is owed to that socket. The agent takes
//! nothing out of its own socket, so this is never more than the program lets through. The agent sends it until the new
//! socket has it; if the agent's process ends before, the next process does so (`store`). The server reads the request
//! as its client wrote it, and answers it directly.

mod connection;
mod delivery;
mod keeping;
mod program;
mod store;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use baton_net::Result;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::connection::read;
use self::delivery::{Outcome, see_left};
pub use self::program::{Lead, Program, Route, Served};
pub use self::store::Store;
use crate::client::{Ends, Services};
pub use crate::http::asked::{Asked, Protocol};
use crate::listener::Listener;

/// Receive buffer of the agent's sockets, bytes. Linux doubles it, and uses between half and nine tenths of that for
/// the window, which is more than the program lets through.
const BUFFER: usize = 1 << 17;

baton_core::shared_counters! {
    /// Counts what the reader has done, for the metrics.
    pub struct Counters("reader_") {
        /// Connections that were accepted so that their requests could be read.
        accepted,
        /// Accepted connections that were to no service, because somebody on this host connected to the listener
        /// itself. They were reset.
        foreign,
        /// Accepted connections that went on to a server with their request.
        given,
        /// Accepted connections that were answered here, with an error.
        answered,
        /// Accepted connections that ended before their request was whole, or broke.
        failed,
    }
}

/// The listener for connections whose requests are to be read, and what serves them.
pub struct Reader {
    listener: Listener,
    program: Arc<dyn Program>,
    services: watch::Receiver<Services>,
    store: Arc<Store>,
    counters: Arc<Counters>,
}

impl Reader {
    /// Makes a reader that listens on 127.0.0.1, at a port of the kernel's choice.
    ///
    /// # Errors
    /// [`baton_net::Error::System`].
    pub fn bind(
        program: Arc<dyn Program>,
        services: watch::Receiver<Services>,
        store: Store,
    ) -> Result<Self> {
        let listener = Listener::bind("requests that are to be read")?;
        listener.hold_at_most(BUFFER)?;
        Ok(Self {
            listener,
            program,
            services,
            store: Arc::new(store),
            counters: Arc::default(),
        })
    }

    /// The port that the reader listens on, for `settings.reader_port` of the data server program.
    pub fn port(&self) -> u16 {
        self.listener.port()
    }

    /// The reader's counters, which stay readable while it runs.
    pub fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.counters)
    }

    /// Reads requests until this future is dropped, which ends every connection. First it takes over what an earlier
    /// process kept.
    pub async fn run(self) {
        let Self {
            listener,
            program,
            services,
            store,
            counters,
        } = self;
        let mut left_over = JoinSet::new();
        match store.left() {
            Ok(all) => {
                for left in all {
                    left_over.spawn(see_left(left, Arc::clone(&program), Arc::clone(&store)));
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot read the requests that an earlier process kept")
            }
        }
        let serve = |client| {
            let ends = Ends::of(&client, &services);
            let (program, store) = (Arc::clone(&program), Arc::clone(&store));
            serve(client, ends, program, store, Arc::clone(&counters))
        };
        listener.accept(serve).await;
    }
}

async fn serve(
    client: TcpStream,
    ends: Option<Ends>,
    program: Arc<dyn Program>,
    store: Arc<Store>,
    counters: Arc<Counters>,
) {
    counters.accepted.fetch_add(1, Relaxed);
    let Some(ends) = ends else {
        counters.foreign.fetch_add(1, Relaxed);
        return;
    };
    let counter = match read(client, ends, program, store).await {
        Ok(Outcome::Given) => &counters.given,
        Ok(Outcome::Answered) => &counters.answered,
        Err(error) => {
            tracing::debug!(?ends, %error, "the agent could not read a request");
            &counters.failed
        }
    };
    counter.fetch_add(1, Relaxed);
}
