//! The bytes of the far end, for the relay to the program.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use baton_virtual_sockets::{AppOptions, FarStream};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;

/// The connection to a plain server, or a session that goes from server to server.
#[derive(Debug)]
pub struct AgentStream(Kind);

#[derive(Debug)]
enum Kind {
    Plain(TcpStream),
    Eop(Handle),
}

/// The near end of a session.
#[derive(Debug)]
pub(super) struct Handle {
    pub near: DuplexStream,
    /// Whether the session has failed. The end of its bytes then counts as a reset.
    pub failed: Arc<AtomicBool>,
    pub task: AbortHandle,
}

impl AgentStream {
    pub(super) const fn plain(stream: TcpStream) -> Self {
        Self(Kind::Plain(stream))
    }

    pub(super) const fn eop(handle: Handle) -> Self {
        Self(Kind::Eop(handle))
    }

    fn end(&mut self) -> Pin<&mut (dyn Both + Unpin)> {
        match &mut self.0 {
            Kind::Plain(stream) => Pin::new(stream),
            Kind::Eop(handle) => Pin::new(&mut handle.near),
        }
    }
}

trait Both: AsyncRead + AsyncWrite {}
impl<T: AsyncRead + AsyncWrite> Both for T {}

impl AsyncRead for AgentStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(self.end().poll_read(cx, buf))?;
        if let Kind::Eop(handle) = &self.0
            && buf.filled().len() == before
            && handle.failed.load(Ordering::Acquire)
        {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for AgentStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.end().poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.end().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.end().poll_shutdown(cx)
    }
}

impl FarStream for AgentStream {
    fn reset(self) {
        match self.0 {
            Kind::Plain(stream) => {
                let _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
            }
            // The session's socket is reset when it is dropped before its end.
            Kind::Eop(handle) => handle.task.abort(),
        }
    }

    /// Returns a function that does nothing: options that a program sets stay on the program's own socket.
    fn setter(&self) -> impl Fn(AppOptions) + Send + Sync + 'static {
        |_| {}
    }
}
