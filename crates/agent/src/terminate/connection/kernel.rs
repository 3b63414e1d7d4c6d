//! What a connection leaves to the kernel: to make records, once a long response has come, and to pass on the rest of each
//! long response without this process reading it.

use std::io;
use std::sync::atomic::Ordering::Relaxed;

use tokio::io::split;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::either::Either;

use super::{Connection, Event, ROOM};
use crate::pass::Pipe;
use crate::terminate::kernel_tls::KernelTls;
use crate::terminate::server_connection::Place;
use crate::terminate::socket::{STALL, reset, write_all};

/// A response is long if at least so many bytes of it are still to come. Shorter ones are not worth the calls that it takes
/// to begin.
const LONG: u64 = 64 << 10;
/// While more bytes than this are to come, a response is read: in records of 1 KB, as a server may write them, they would
/// wear out the kernel's key. The session replaces its own key.
const TOO_LONG: u64 = 1 << 33;

impl Connection<'_> {
    /// The rest of a response that is to pass unread: so many bytes. `None`: what the server says is read.
    pub(super) fn long_response(&self) -> Option<u64> {
        let unread = self.exchange.unread();
        let is_to_pass = (LONG..TOO_LONG).contains(&unread)
            && !self.reads_all
            && self.place == Place::Here
            && self.local.is_at_port()
            && self.server.is_some()
            && self.to_server.is_empty()
            && self.services.borrow().kernel_tls;
        is_to_pass.then_some(unread)
    }

    /// Passes on the rest of a long response, when all before it has been written to the client's socket. `None`: the
    /// kernel cannot, so this response is read.
    pub(super) async fn pass_unread(&mut self, unread: u64) -> Option<Event> {
        let event = self.try_to_pass(unread).await;
        self.reads_all = event.is_none();
        event
    }

    async fn try_to_pass(&mut self, unread: u64) -> Option<Event> {
        if KernelTls::is_missing() {
            return None;
        }
        // If this user's pipes have too much room already, further ones are too small to be worth it (pipe(7)).
        let pipe = Pipe::new(ROOM).ok().filter(|pipe| pipe.room() == ROOM)?;
        if self.kernel.is_none() {
            self.kernel = Some(KernelTls::begin(&self.client, &mut self.state.session)?);
            self.counters.offloaded.fetch_add(1, Relaxed);
        }
        let (from, to) = self.server.take()?;
        let server = from.unsplit(to);
        let event = match &server {
            Either::Left(Either::Left(server)) => Some(self.pass_from(server, &pipe, unread).await),
            // What comes from a unix socket, or by another agent, is no long response.
            _ => None,
        };
        self.server = Some(split(server));
        event
    }

    async fn pass_from(&mut self, server: &TcpStream, pipe: &Pipe, mut unread: u64) -> Event {
        self.counters.spliced.fetch_add(1, Relaxed);
        while unread > 0 {
            let filled = tokio::select! {
                biased;
                filled = pipe.fill(server, unread) => filled,
                () = reset(&self.client) => {
                    return Event::ClientTook(Err(io::ErrorKind::ConnectionReset.into()));
                }
            };
            let mut waiting = match filled {
                Ok(filled @ 1..) => filled,
                ended => return Event::ServerSent(ended),
            };
            self.exchange.passed_unread(waiting as u64);
            unread -= waiting as u64;
            while waiting > 0 {
                let sent = timeout(STALL, pipe.send(&self.client, waiting)).await;
                let sent = sent.unwrap_or_else(|stalled| Err(stalled.into()));
                match sent.and_then(|sent| self.client_took(sent).map(|()| sent)) {
                    Ok(sent) => waiting -= sent,
                    Err(error) => return Event::ClientTook(Err(error)),
                }
            }
        }
        Event::Passed
    }

    /// Notes that the client's socket has taken so many bytes.
    ///
    /// # Errors
    /// The kernel's key must not protect more.
    pub(super) fn client_took(&mut self, bytes: usize) -> io::Result<()> {
        if let Some(kernel) = &mut self.kernel
            && kernel.wrote(bytes)
        {
            let next = kernel.next_record(&self.client)?;
            let watched = self.state.session.watch_offloaded(next);
            watched.map_err(io::Error::other)?;
        }
        Ok(())
    }

    /// Sends all that waits for the client. If the session ends with it, TCP has been given all afterwards, so that the
    /// connection may end.
    pub(super) async fn send_all(&mut self) -> io::Result<()> {
        let waiting = self.client_out.len();
        write_all(&self.client, &mut self.client_out).await?;
        self.client_took(waiting)?;
        if let Some(kernel) = &mut self.kernel
            && let Some(alert) = self.state.session.take_alert()
        {
            kernel.send_alert(&self.client, alert).await?;
            kernel.finish(&self.client).await?;
        }
        Ok(())
    }

    /// Takes the sending direction back from the kernel, before the session goes elsewhere. All must have been sent.
    pub(super) async fn reclaim_session(&mut self) -> io::Result<()> {
        if let Some(kernel) = &self.kernel {
            let next = kernel.finish(&self.client).await?;
            let reclaimed = self.state.session.reclaim_sending(next);
            reclaimed.map_err(io::Error::other)?;
        }
        Ok(())
    }

    /// Leaves the sending direction to the kernel again, because the session stays.
    pub(super) fn keep_session(&mut self) {
        if self.kernel.is_some() {
            self.state.session.offload_sending();
        }
    }
}
