//! Speaks TLS to the clients of a service, with HTTP/1 or HTTP/2 in it, and HTTP/1 to the server on this host, which
//! gets each request with its client's own address.
//!
//! ```text
//!  client:port <==(cluster address:443, TLS)==> agent <--(client, cluster address:80, HTTP)--> the local server
//! ```
//!
//! A server that listens at a unix socket is told the address instead (`local_server.rs`).
//!
//! To the programs in the kernel the agent is the server that listens at the service's port: they adopt connections
//! into its listener as into any other.

mod arrivals;
mod begin;
mod connection;
mod daemon;
mod exchange;
mod framed;
mod http2;
pub mod judge;
mod kept;
mod kernel_tls;
mod kinds;
mod listeners;
mod local_server;
pub mod messages;
mod order;
pub mod process;
mod server_connection;
pub mod settings;
mod socket;
mod state;
mod succession;
pub mod tickets;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use baton_tls::Acceptor;
use tokio::net::TcpStream;
use tokio::sync::watch;

use self::arrivals::Arrivals;
use self::begin::serve;
use self::connection::End;
use self::daemon::Daemon;
use self::judge::Judge;
use self::kept::Kept;
use self::kinds::Kinds;
use self::local_server::LocalServer;
use crate::client::Ends;

baton_core::shared_counters! {
    /// Counts what has become of TLS connections, for the metrics.
    pub struct Counters("tls_") {
        /// Connections that were accepted.
        accepted,
        /// Connections whose handshake was made.
        shaken,
        /// Connections that ended in their handshake: by an alert, in silence, or because the client went away.
        refused,
        /// Connections whose clients speak HTTP/2.
        http2,
        /// Connections of these whose clients were asked to make a new one, because this data server drains (GOAWAY).
        sent_away,
        /// Requests that went to the local server.
        requests,
        /// Requests that went to another data server's server, by the agent there.
        relayed,
        /// Connections to the local server on which another data server's agent sends requests.
        relays,
        /// Connections to the local server that could not be made.
        unreachable,
        /// Connections for which the kernel began to make the records that their clients are sent.
        offloaded,
        /// Responses whose rest passed from the server to the client within the kernel.
        spliced,
        /// Requests that the agent answered itself, with an error.
        answered,
        /// Connections that came from another data server's agent.
        came,
        /// Connections that went to another data server's agent with a request.
        moved,
        /// Tries to move a connection that did not succeed. Each is repeated a few times.
        stayed,
        /// Connections that came to a regular end.
        finished,
        /// Connections that broke: in the middle of a request or response, or by a record that is not the client's.
        failed,
    }
}

/// How the connections of one service are served.
pub(crate) struct Service {
    /// The certificates, and all else that a handshake needs.
    pub acceptor: Acceptor,
    /// The local server.
    pub server: Arc<LocalServer>,
    /// The longest time that a handshake, or the head of a request, may take.
    pub head_timeout: Duration,
    /// Whether the kernel may make the records that clients are sent.
    pub kernel_tls: bool,
    /// How requests find other data servers. `None`: this one answers all.
    cluster: Option<Cluster>,
    /// The connections that come from other data servers.
    arrivals: Arrivals,
    /// Changes when connections are to leave this data server if they can.
    leave: watch::Receiver<()>,
    /// The value of Strict-Transport-Security.
    hsts: Option<String>,
    /// Counters of what happens.
    kinds: Kinds,
}

/// How requests find other data servers.
pub(crate) struct Cluster {
    /// Says for each request which data server is to answer it.
    judge: Judge,
    /// Has connections move there, and requests relayed.
    daemon: Daemon,
    /// Where the local server's connections wait meanwhile.
    kept: Kept,
}

impl Service {
    /// The value of Strict-Transport-Security for each final response that does not have this field. `None`: responses
    /// stay without it.
    pub fn hsts(&self) -> Option<&str> {
        self.hsts.as_deref()
    }
}

/// Serves one connection, and counts how it went.
async fn serve_client(
    client: TcpStream,
    service: watch::Receiver<Arc<Service>>,
    counters: Arc<Counters>,
) {
    counters.accepted.fetch_add(1, Relaxed);
    let Some(ends) = Ends::of_any(&client) else {
        return;
    };
    let counter = match serve(client, ends, service, &counters).await {
        Ok(End::Regular) => &counters.finished,
        Ok(End::Moved) => &counters.moved,
        Ok(End::Refused) => &counters.refused,
        Err(error) => {
            tracing::debug!(?ends, %error, "a TLS connection failed");
            &counters.failed
        }
    };
    counter.fetch_add(1, Relaxed);
}
