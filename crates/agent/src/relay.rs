//! The relay for servers whose listener is MPTCP, as Go programs make it by default. The kernel builds a socket from a
//! cookie only for a plain TCP listener (`bpf_sk_assign_tcp_reqsk` in net/core/filter.c answers -EINVAL for MPTCP). So
//! such connections are adopted into a plain listener of the agent's.

use std::io;
use std::net::SocketAddrV4;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use baton_net::{Error, Result};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::client::{Ends, Services, has_ended};
use crate::listener::Listener;
use crate::pass::pass_both_ways;
use crate::routing::Routing;
use crate::server::Server;

baton_core::shared_counters! {
    /// Counts what relays have done, for the metrics.
    pub struct Counters("relay_") {
        /// Connections that were accepted.
        accepted,
        /// Accepted connections that were to no service, because somebody on this host connected to the listener
        /// itself. They were reset.
        foreign,
        /// Accepted connections whose server could not be connected to, or broke its side of the connection. They were
        /// reset.
        failed,
        /// Accepted connections to which a RST came on the client's side. Either the client gave up, or the connection
        /// went on with another socket or data server (`bpf/data_server/handover/handover.h`).
        reset,
        /// Accepted connections that came to a regular end in both directions.
        finished,
    }
}

/// A listener for adopted connections, and the relay behind it.
#[derive(Debug)]
pub struct Relay {
    listener: Listener,
    server: Server,
    /// Clients' connections are to these services. `None`: nobody but clients can connect to the listener.
    services: Option<watch::Receiver<Services>>,
    counters: Arc<Counters>,
}

impl Relay {
    /// Makes a relay that listens on 127.0.0.1, at a port of the kernel's choice.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn bind(routing: &Routing, services: watch::Receiver<Services>) -> Result<Self> {
        Ok(Self::of(Listener::bind("the relay")?, routing, services))
    }

    /// Makes a relay that uses a listener which exists already. It must be plain TCP.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn on(
        listener: std::net::TcpListener,
        routing: &Routing,
        services: watch::Receiver<Services>,
    ) -> Result<Self> {
        let listener = Listener::adopt(listener);
        let listener = listener.map_err(Error::system("use the relay's listener"))?;
        Ok(Self::of(listener, routing, services))
    }

    fn of(listener: Listener, routing: &Routing, services: watch::Receiver<Services>) -> Self {
        Self {
            listener,
            server: Server::Here(routing.mark),
            services: Some(services),
            counters: Arc::default(),
        }
    }

    /// Makes a relay from a listener at the cluster address to a server in a container.
    pub(crate) fn to_container(
        listener: Listener,
        server: SocketAddrV4,
        counters: Arc<Counters>,
    ) -> Self {
        Self {
            listener,
            server: Server::Container(server),
            services: None,
            counters,
        }
    }

    /// The port that the relay listens on, for `settings.relay_port` of the data server program.
    pub fn port(&self) -> u16 {
        self.listener.port()
    }

    /// The relay's counters, which stay readable while it runs.
    pub fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.counters)
    }

    /// Relays connections until this future is dropped, which ends every connection.
    pub async fn run(self) {
        let Self {
            listener,
            server,
            services,
            counters,
        } = self;
        let serve = |client| {
            let ends = match &services {
                Some(services) => Ends::of(&client, services),
                None => Ends::of_any(&client),
            };
            serve(client, ends, server, Arc::clone(&counters))
        };
        listener.accept(serve).await;
    }
}

/// Relays one connection, and counts how it went.
async fn serve(client: TcpStream, ends: Option<Ends>, server: Server, counters: Arc<Counters>) {
    counters.accepted.fetch_add(1, Relaxed);
    let Some(ends) = ends else {
        counters.foreign.fetch_add(1, Relaxed);
        return;
    };
    let counter = match relay(&client, ends, server).await {
        Ok(()) => &counters.finished,
        Err(_) if has_ended(&client) => &counters.reset,
        Err(error) => {
            tracing::debug!(?ends, ?server, %error, "a relayed connection failed");
            &counters.failed
        }
    };
    counter.fetch_add(1, Relaxed);
}

async fn relay(client: &TcpStream, ends: Ends, server: Server) -> io::Result<()> {
    let server = server.connect(ends).await?;
    client.set_nodelay(true)?;
    pass_both_ways(client, &server, 0).await
}
