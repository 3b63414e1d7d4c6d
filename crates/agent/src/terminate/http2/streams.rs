//! What becomes of each stream, which is one request and its response.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use http_body_util::{BodyExt as _, Either, Full};
use hyper::body::{Body as _, Incoming};
use hyper::header::{HeaderValue, STRICT_TRANSPORT_SECURITY};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::super::judge::Judgement;
use super::super::server_connection::Place;
use super::super::socket::STALL;
use super::super::{Counters, Service};
use super::fields::end_with_connection;
use super::request::{for_server, head};
use super::response::{Piece, ResponseBody, ServersBody, own};
use super::servers::{Server, Servers};
use crate::client::Ends;
use crate::http::answer::Answer;

/// What the streams of a client's connection have in common.
pub(super) struct Streams {
    /// How the service is served, which a reload may change. Each stream goes by what is true at its beginning.
    services: watch::Receiver<Arc<Service>>,
    counters: Arc<Counters>,
    ends: Ends,
    servers: Servers,
    /// Whether there was a stream.
    has_begun: AtomicBool,
    /// Each stream that is open has a copy.
    open: Arc<()>,
}

impl Streams {
    pub fn new(
        services: watch::Receiver<Arc<Service>>,
        counters: Arc<Counters>,
        ends: Ends,
    ) -> Self {
        Self {
            services,
            counters,
            ends,
            servers: Servers::default(),
            has_begun: AtomicBool::new(false),
            open: Arc::default(),
        }
    }

    pub fn has_begun(&self) -> bool {
        self.has_begun.load(Relaxed)
    }

    pub fn are_open(&self) -> bool {
        Arc::strong_count(&self.open) > 1
    }

    /// Answers a request. This never fails: a server that cannot be asked is answered for.
    pub async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<ResponseBody> {
        self.has_begun.store(true, Relaxed);
        let to_head = request.method() == Method::HEAD;
        let mut response = self.pass_on(request).await.unwrap_or_else(|answer| {
            self.counters.answered.fetch_add(1, Relaxed);
            own(answer, to_head)
        });
        if let Some(hsts) = self.hsts() {
            let fields = response.headers_mut();
            fields.entry(STRICT_TRANSPORT_SECURITY).or_insert(hsts);
        }
        response
    }

    /// What responses tell browsers whose servers do not.
    fn hsts(&self) -> Option<HeaderValue> {
        let service = self.services.borrow();
        // The configuration lets nothing through that is no such value.
        HeaderValue::from_str(service.hsts.as_ref()?).ok()
    }

    /// Passes a request on to the server that is to answer it, and its response back.
    async fn pass_on(
        self: &Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<ResponseBody>, Answer> {
        let open = Arc::clone(&self.open);
        let (client, body) = request.into_parts();
        let service = self.services.borrow().clone();
        let forwarded_for = service.server.forwarded_for(&self.ends);
        let request = for_server(client, !body.is_end_stream(), forwarded_for)?;
        let place = self.judge(&service, &request).await?;
        let count = match place {
            Place::Here => &self.counters.requests,
            Place::Other(_) => &self.counters.relayed,
        };
        count.fetch_add(1, Relaxed);
        let request = (request, Either::Right(body));
        let connecting = Server::connect(&service, self.ends, place);
        let asked = (self.servers).ask(&service, place, request, connecting);
        let (response, server) = asked.await.map_err(|error| {
            tracing::debug!(?place, %error, "a server does not answer a request of HTTP/2");
            Answer::Nobody
        })?;
        // Nobody has asked for another protocol.
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Err(Answer::Nobody);
        }
        let (mut head, body) = response.into_parts();
        end_with_connection(&mut head.headers);
        let is_end = body.is_end_stream();
        let (pieces, servers_body) = mpsc::channel(1);
        let streams = Arc::clone(self);
        tokio::spawn(async move {
            if is_end || pass_back(body, pieces).await {
                streams.servers.keep(server).await;
            }
            drop(open);
        });
        let body = if is_end {
            Either::Left(Full::default())
        } else {
            Either::Right(ServersBody(servers_body))
        };
        Ok(Response::from_parts(head, body))
    }

    /// Says where the server is that is to answer the request.
    async fn judge(&self, service: &Service, request: &Parts) -> Result<Place, Answer> {
        let head = head(request)?;
        let Some(cluster) = &service.cluster else {
            return Ok(Place::Here);
        };
        match cluster.judge.request(self.ends, &head).await {
            Judgement::Here => Ok(Place::Here),
            Judgement::Elsewhere(address) => Ok(Place::Other(address)),
            Judgement::Nobody => Err(Answer::Nobody),
        }
    }
}

/// Passes on a server's body until it ends, its client resets the stream, or takes nothing for a while. Returns whether
/// the body has come to its end, so that the server's connection can have another request.
async fn pass_back(mut body: Incoming, pieces: mpsc::Sender<Piece>) -> bool {
    loop {
        let frame = tokio::select! {
            frame = body.frame() => frame,
            () = pieces.closed() => return false,
        };
        let (piece, is_end) = match frame {
            Some(Ok(mut frame)) => {
                if let Some(trailers) = frame.trailers_mut() {
                    end_with_connection(trailers);
                }
                // Nothing follows trailers, so nobody waits for what comes after them.
                let is_end = frame.is_trailers();
                (Piece::Frame(frame), is_end)
            }
            Some(Err(_)) => return false,
            None => (Piece::End, true),
        };
        match timeout(STALL, pieces.send(piece)).await {
            Ok(Ok(())) if is_end => return true,
            Ok(Ok(())) => (),
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests;
