//! The connections to servers that a client's connection has. A stream has one of them alone until its response has
//! ended; then the next stream to the same place may have it.

use std::io;
use std::sync::{Arc, Mutex};

use baton_core::locked::locked;
use bytes::Bytes;
use http_body_util::{Either, Empty};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper::http::request::Parts;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::AbortHandle;

use super::super::Service;
use super::super::server_connection::{Place, connect};
use crate::client::Ends;

/// This many connections may wait for their next streams.
const KEPT: usize = 16;
/// What has been read of a response and not passed on. The head of a response must fit.
const BUFFER: usize = 64 << 10;

/// The body of a request: the client's, or none.
pub(super) type RequestBody = Either<Empty<Bytes>, Incoming>;

/// The connections to servers that no stream has.
#[derive(Default)]
pub(super) struct Servers {
    kept: Mutex<Vec<Server>>,
}

/// A connection to a server. It ends with a RST when this is dropped, whatever is under way.
pub(super) struct Server {
    place: Place,
    /// The settings by which it was made.
    service: Arc<Service>,
    requests: SendRequest<RequestBody>,
    task: AbortHandle,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Servers {
    /// Sends a request to the server at this place, and returns its response, which has the connection until its body
    /// has ended. The connection is one that was kept, or the one that `connecting` makes.
    ///
    /// A connection that was kept may have ended meanwhile. Then the request goes out once more, by a new one, if the
    /// server has nothing of it, or if it may be done twice (RFC 9110, section 9.2.2) and has no body.
    ///
    /// # Errors
    /// The server cannot be reached, or has not begun to answer.
    pub async fn ask(
        &self,
        service: &Arc<Service>,
        place: Place,
        (head, body): (Parts, RequestBody),
        connecting: impl Future<Output = io::Result<Server>>,
    ) -> io::Result<(Response<Incoming>, Server)> {
        let may_repeat = head.method.is_idempotent() && body.is_end_stream();
        let repeated = may_repeat.then(|| head.clone());
        let mut request = Request::from_parts(head, body);
        if let Some(mut server) = self.take(service, place) {
            match server.requests.try_send_request(request).await {
                Ok(response) => return Ok((response, server)),
                Err(mut error) => {
                    let nothing = Either::Left(Empty::new());
                    let again = repeated.map(|head| Request::from_parts(head, nothing));
                    let again = error.take_message().or(again);
                    request = again.ok_or_else(|| io::Error::other(error.into_error()))?;
                }
            }
        }
        let mut server = connecting.await?;
        let response = server.requests.send_request(request).await;
        Ok((response.map_err(io::Error::other)?, server))
    }

    /// A connection that was kept for requests to this place, as the service is now.
    fn take(&self, service: &Arc<Service>, place: Place) -> Option<Server> {
        let mut kept = locked(&self.kept);
        kept.retain(|one| !one.requests.is_closed() && Arc::ptr_eq(&one.service, service));
        let is_ready = |one: &Server| one.place == place && one.requests.is_ready();
        let found = kept.iter().rposition(is_ready)?;
        Some(kept.remove(found))
    }

    /// Keeps a connection whose response has ended, as soon as its request has as well.
    pub async fn keep(&self, mut server: Server) {
        if server.requests.ready().await.is_err() {
            return;
        }
        let mut kept = locked(&self.kept);
        kept.push(server);
        if kept.len() > KEPT {
            kept.remove(0);
        }
    }
}

impl Server {
    /// Connects to the server at this place in the client's name.
    pub async fn connect(service: &Arc<Service>, ends: Ends, place: Place) -> io::Result<Self> {
        let stream = connect(service, &service.server, ends, place).await?;
        Self::over(stream, service, place).await
    }

    /// Makes a connection to the server of this stream.
    pub async fn over(
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        service: &Arc<Service>,
        place: Place,
    ) -> io::Result<Self> {
        let mut builder = Builder::new();
        let handshake = (builder.max_buf_size(BUFFER)).handshake(TokioIo::new(stream));
        let (requests, connection) = handshake.await.map_err(io::Error::other)?;
        let task = tokio::spawn(async move {
            // Who waits for a response hears of the error.
            let _ = connection.await;
        });
        Ok(Self {
            place,
            service: Arc::clone(service),
            requests,
            task: task.abort_handle(),
        })
    }
}

#[cfg(test)]
pub(super) mod tests;
