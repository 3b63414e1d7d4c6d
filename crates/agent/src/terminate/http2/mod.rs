//! A client's connection that speaks HTTP/2. Each of its streams is a request of HTTP/1.1 to a server:
//!
//! ```text
//!                  streams (hyper)               judged one by one          connections of their own, kept
//!  client <==TLS==> ClientStream <==> Streams --+-- here ------------------> the local server
//!                                               +-- another data server's --> `server_connection.rs`
//! ```
//!
//! The connection stays at this data server, because its streams may be for several at the same time. While the data server
//! drains, clients are asked to make a new one (GOAWAY). The library hyper
//! keeps the protocol. Against floods it ends a connection (GOAWAY) whose client resets very many streams before they
//! have begun ("rapid reset"), makes this side reset very many by errors, or sends a head in too many CONTINUATION
//! frames; and it answers no more pings and settings than it can send, before it reads on.

mod client_stream;
mod fields;
mod request;
mod response;
mod servers;
mod streams;

use std::convert::Infallible;
use std::error::Error as _;
use std::future::pending;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use self::client_stream::ClientStream;
use self::streams::Streams;
use super::connection::End;
use super::socket::STALL;
use super::state::State;
use super::{Counters, Service};
use crate::client::{Ends, LINGERS};
use crate::http::verdict::LONGEST;

/// The name of the protocol (RFC 7301).
pub(super) const PROTOCOL: &[u8] = b"h2";

/// A client may have this many streams open at once.
const STREAMS: u32 = 100;
/// This much of one stream's request, and of all streams' together, may come before a server takes it.
const STREAM_WINDOW: u32 = 512 << 10;
const WINDOW: u32 = 1 << 20;
/// This much of one stream's response may wait for the client.
const STREAM_BUFFER: usize = 128 << 10;

/// Serves a connection whose client has agreed to HTTP/2. The first request must have come until `deadline`.
pub(super) async fn serve(
    services: watch::Receiver<Arc<Service>>,
    counters: &Arc<Counters>,
    client: TcpStream,
    ends: Ends,
    state: State,
    deadline: Instant,
) -> io::Result<End> {
    counters.http2.fetch_add(1, Relaxed);
    let mut leave = services.borrow().leave.clone();
    leave.mark_unchanged();
    let streams = Arc::new(Streams::new(services, Arc::clone(counters), ends));
    let answer = {
        let streams = Arc::clone(&streams);
        service_fn(move |request| {
            let answering = Arc::clone(&streams).answer(request);
            async { Ok::<_, Infallible>(answering.await) }
        })
    };
    let client = TokioIo::new(ClientStream::new(client, state));
    let mut connection = pin!(builder().serve_connection(client, answer));
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = passes_in_vain(deadline, &streams) => {
            connection.as_mut().graceful_shutdown();
            // A client that says nothing at all does not hear it either.
            let ended = timeout(LINGERS, connection).await;
            ended.unwrap_or(Ok(()))
        }
        // This data server drains: the client's next connection goes to another one. The streams end as they would.
        Ok(()) = leave.changed() => {
            counters.sent_away.fetch_add(1, Relaxed);
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = connection => ended,
                () = is_silent(&streams) => Ok(()),
            }
        }
    };
    match ended {
        Ok(()) => Ok(End::Regular),
        // A client that breaks off between two requests has all it has asked for.
        Err(error) if is_reset(&error) && !streams.are_open() => Ok(End::Regular),
        Err(error) => Err(io::Error::other(error)),
    }
}

/// Ends at the deadline if no request has come until then.
async fn passes_in_vain(deadline: Instant, streams: &Streams) {
    sleep_until(deadline).await;
    if streams.has_begun() {
        pending::<()>().await;
    }
}

/// Ends when no stream has been open for so long that the client, which has got GOAWAY, must have taken the last response
/// and answered.
async fn is_silent(streams: &Streams) {
    let mut were_open = true;
    loop {
        sleep(STALL).await;
        let are_open = streams.are_open();
        if !were_open && !are_open {
            return;
        }
        were_open = are_open;
    }
}

/// Whether the client's TCP connection has broken.
fn is_reset(error: &hyper::Error) -> bool {
    let source = error.source().and_then(|source| source.downcast_ref());
    source.is_some_and(|error: &io::Error| {
        matches!(
            error.kind(),
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
        )
    })
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(LONGEST as u32)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_send_buf_size(STREAM_BUFFER)
        // A client that is idle may stay, as with HTTP/1.
        .keep_alive_interval(None)
        // Responses are the servers' own.
        .auto_date_header(false);
    builder
}
