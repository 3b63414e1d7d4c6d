//! A channel to another node: bytes in both directions. Its stream begins with what it is for:
//!
//! ```text
//!  kind (1 byte): 0: a question, whose text is the rest | 1: a channel, for what the text says: length (2 bytes) | text
//! ```

use std::io;
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use quinn::{Connection, RecvStream, SendStream, VarInt};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Says that nobody wants the rest any more.
const GIVEN_UP: VarInt = VarInt::from_u32(0);

/// Two streams of bytes, one in each direction. Each ends in order when its sender shuts it down. If a channel is
/// dropped before, the other end's reads fail.
#[derive(Debug)]
pub struct Channel {
    to: SendStream,
    from: RecvStream,
    is_shut_down: bool,
}

/// A channel that another node has opened.
#[derive(Debug)]
pub struct Opened {
    /// The node that has opened it.
    pub from: Ipv4Addr,
    /// What it is for.
    pub text: Vec<u8>,
    /// The channel.
    pub channel: Channel,
}

impl Channel {
    pub(crate) async fn open(connection: &Connection) -> io::Result<Self> {
        Ok(Self::new(connection.open_bi().await?))
    }

    pub(crate) async fn accept(connection: &Connection) -> io::Result<Self> {
        Ok(Self::new(connection.accept_bi().await?))
    }

    fn new((to, from): (SendStream, RecvStream)) -> Self {
        Self {
            to,
            from,
            is_shut_down: false,
        }
    }

    /// All that the other node sends, which is at most `most` bytes.
    pub(crate) async fn read_to_end(&mut self, most: usize) -> io::Result<Vec<u8>> {
        self.from.read_to_end(most).await.map_err(io::Error::other)
    }

    /// Sends nothing more, not even again what was lost on its way.
    pub(crate) fn take_back(&mut self) {
        // An error means that it has ended already.
        let _ = self.to.reset(GIVEN_UP);
    }

    /// Waits until the other node no longer wants what is sent.
    pub(crate) async fn is_unwanted(&mut self) {
        // An error means that the connection has ended.
        let _ = self.to.stopped().await;
    }
}

impl Drop for Channel {
    /// quinn ends in order what is dropped; the other node would take a part for all.
    fn drop(&mut self) {
        if !self.is_shut_down {
            self.take_back();
        }
    }
}

impl AsyncRead for Channel {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        AsyncRead::poll_read(Pin::new(&mut self.from), cx, buf)
    }
}

impl AsyncWrite for Channel {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        AsyncWrite::poll_write(Pin::new(&mut self.to), cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        AsyncWrite::poll_flush(Pin::new(&mut self.to), cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(AsyncWrite::poll_shutdown(Pin::new(&mut self.to), cx))?;
        self.is_shut_down = true;
        Poll::Ready(Ok(()))
    }
}
