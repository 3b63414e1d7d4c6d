//! A connection: how it is made or accepted, and its bytes.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};

use baton_saps_protocol::ConnectionId;
use baton_saps_protocol::wire::{Errno, Way};
use baton_wire::Endpoint;
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::SocketOptions;
use crate::shared::{Shared, error, poll_broken};

/// A connection that a program made.
#[derive(Debug)]
pub struct Connected<S = VirtualStream> {
    /// The cluster address and port that it was made from.
    pub local: SocketAddr,
    /// The connection's bytes.
    pub stream: S,
}

/// A client's connection.
#[derive(Debug)]
pub struct Accepted<S = VirtualStream> {
    /// The client's address and port.
    pub peer: SocketAddr,
    /// The cluster address and port that the client connected to.
    pub local: SocketAddr,
    /// The connection's bytes.
    pub stream: S,
}

/// One end of a connection. At an application node it belongs to a virtual socket.
///
/// Reading ends with 0 bytes when the client has half-closed; [`tokio::io::AsyncWriteExt::shutdown`] half-closes this
/// direction. Dropping the stream closes the connection as close(2) does: bytes that were written are still sent.
///
/// Errors of the client's connection are OS errors and reported once, by the next call: ECONNRESET, ETIMEDOUT and so
/// on, and ENETRESET if the channel to the I/O server was lost. After that, writing fails with EPIPE and reading
/// returns the end.
#[derive(Debug)]
pub struct VirtualStream {
    shared: Arc<Shared>,
    id: ConnectionId,
}

/// Sets options of a [`VirtualStream`]; does nothing once the stream is dropped.
#[derive(Clone, Debug)]
pub struct StreamOptions {
    shared: Arc<Shared>,
    id: ConnectionId,
}

impl StreamOptions {
    /// Sets options of the I/O server's socket. Does not wait; the I/O server logs an option that its kernel refuses.
    pub fn set(&self, options: SocketOptions) {
        self.shared
            .with(|state| state.channel.set_options(self.id, options));
    }
}

impl VirtualStream {
    /// Makes a connection, and waits for the other end's answer. Dropping the future gives the connection up.
    pub(crate) async fn make(
        shared: &Arc<Shared>,
        way: Way,
        socket: Weak<TcpStream>,
    ) -> Result<(Self, Endpoint), Errno> {
        let made = shared.with(|state| state.make(way, socket));
        let (id, answered) = made.ok_or(Errno::NETWORK_DOWN)?;
        let shared = Arc::clone(shared);
        let stream = Self { shared, id };
        match answered.await {
            Ok(answer) => answer.map(|local| (stream, local)),
            Err(_) => Err(Errno::NETWORK_RESET),
        }
    }

    /// Accepts a connection that the other end makes. Returns `None` if it is already gone.
    pub(crate) fn accept(
        shared: &Arc<Shared>,
        id: ConnectionId,
        local: Endpoint,
        socket: Weak<TcpStream>,
    ) -> Option<Self> {
        let is_open = shared.with(|state| state.accept(id, local, socket));
        let shared = Arc::clone(shared);
        is_open.then(|| Self { shared, id })
    }

    /// Ends the connection with a RST; bytes that were not sent are thrown away.
    pub fn reset(self) {
        self.reset_with(Errno::RESET);
    }

    pub(crate) fn reset_with(self, errno: Errno) {
        self.shared
            .with(|state| state.channel.reset(self.id, errno));
    }

    /// Returns a handle that sets the connection's options while other code has the stream.
    pub fn options(&self) -> StreamOptions {
        StreamOptions {
            shared: Arc::clone(&self.shared),
            id: self.id,
        }
    }

    /// Waits until the connection breaks, even while nobody reads or writes it, and while other code has the stream.
    /// Never ends if the connection does not break, or after its error has been reported.
    pub fn broken(&self) -> impl Future<Output = ()> + Send + 'static {
        let (shared, id) = (Arc::clone(&self.shared), self.id);
        poll_fn(move |cx| poll_broken(&shared, cx, id))
    }

    /// Returns the next bytes, at most `max`, without a copy; `None` at their end. Cancel safe.
    ///
    /// # Errors
    /// The errors of reading.
    pub async fn receive(&self, max: usize) -> io::Result<Option<Bytes>> {
        let receive = |cx: &mut Context<'_>| {
            self.shared
                .with(|state| state.poll_receive(cx, self.id, max))
        };
        poll_fn(receive).await
    }

    /// Waits until there is room to send, and returns the room in bytes. Cancel safe.
    ///
    /// # Errors
    /// The errors of writing.
    pub async fn room(&self) -> io::Result<usize> {
        poll_fn(|cx| self.shared.with(|state| state.poll_room(cx, self.id))).await
    }

    /// Sends bytes without a copy and without waiting, even if they exceed [`VirtualStream::room`].
    ///
    /// # Errors
    /// The errors of writing; then nothing is sent.
    pub fn send(&self, bytes: Bytes) -> io::Result<()> {
        let sent = self.shared.with(|state| state.channel.send(self.id, bytes));
        sent.map_err(error)
    }

    /// Ends this direction behind the bytes that were written: a FIN.
    pub fn finish(&self) {
        self.shared.with(|state| state.channel.shutdown(self.id));
    }

    /// Waits until the other end has closed the connection, or it broke. Bytes that have arrived before can still be
    /// read. Cancel safe.
    pub async fn gone(&self) {
        poll_fn(|cx| self.shared.with(|state| state.poll_gone(cx, self.id))).await;
    }
}

impl Drop for VirtualStream {
    fn drop(&mut self) {
        self.shared.with(|state| {
            state.channel.close(self.id);
            state.forget(self.id);
        });
    }
}

impl AsyncRead for VirtualStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let max = buffer.remaining();
        if max == 0 {
            return Poll::Ready(Ok(()));
        }
        let received = self
            .shared
            .with(|state| state.poll_receive(cx, self.id, max));
        if let Some(bytes) = ready!(received)? {
            buffer.put_slice(&bytes);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for VirtualStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.shared.with(|state| {
            let length = ready!(state.poll_room(cx, self.id))?.min(bytes.len());
            let sent = state
                .channel
                .send(self.id, Bytes::copy_from_slice(&bytes[..length]));
            Poll::Ready(sent.map(|()| length).map_err(error))
        })
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.finish();
        Poll::Ready(Ok(()))
    }
}
