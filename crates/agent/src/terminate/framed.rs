//! The bytes of a connection on their way between the agents of two data servers. The end is said in words, because the
//! daemons between them may die, and a reader must not take a part for all:
//!
//! ```text
//!  length (2 bytes, big-endian) | so many bytes      length 0: this direction ends in order
//! ```

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection whose bytes are in frames. It ends in order only by a shutdown.
#[derive(Debug)]
pub(super) struct Framed<S> {
    stream: S,
    incoming: Incoming,
    outgoing: Outgoing,
}

#[derive(Debug, Default)]
struct Incoming {
    /// The length that is coming, of which so many bytes have come.
    length: [u8; 2],
    come: usize,
    /// So many bytes of the frame are still to come.
    left: usize,
    has_ended: bool,
}

#[derive(Debug, Default)]
struct Outgoing {
    /// The length that goes out, of which so many bytes are still to go.
    length: [u8; 2],
    to_go: usize,
    /// So many bytes of the frame are still to go, behind its length.
    left: usize,
    has_ended: bool,
}

impl<S> Framed<S> {
    pub fn new(stream: S) -> Self {
        Self {
            stream,
            incoming: Incoming::default(),
            outgoing: Outgoing::default(),
        }
    }
}

impl<S: AsyncRead + Unpin> Framed<S> {
    /// Reads the length of the next frame.
    fn poll_length(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Incoming {
            length,
            come,
            left,
            has_ended,
        } = &mut self.incoming;
        while *come < length.len() {
            let mut rest = ReadBuf::new(&mut length[*come..]);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut rest))?;
            if rest.filled().is_empty() {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
            *come += rest.filled().len();
        }
        *come = 0;
        *left = u16::from_be_bytes(*length).into();
        *has_ended = *left == 0;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Framed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.incoming.left == 0 && !this.incoming.has_ended {
            ready!(this.poll_length(cx))?;
        }
        if this.incoming.has_ended || buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let most = this.incoming.left.min(buf.remaining());
        let mut part = ReadBuf::new(buf.initialize_unfilled_to(most));
        ready!(Pin::new(&mut this.stream).poll_read(cx, &mut part))?;
        let come = part.filled().len();
        if come == 0 {
            return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
        }
        buf.advance(come);
        this.incoming.left -= come;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> Framed<S> {
    /// Begins a frame of this length, behind all of the one before.
    fn begin(&mut self, length: u16) {
        self.outgoing.length = length.to_be_bytes();
        self.outgoing.to_go = self.outgoing.length.len();
        self.outgoing.left = length.into();
    }

    /// Writes what is still to go of a frame's length.
    fn poll_begun(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Outgoing { length, to_go, .. } = &mut self.outgoing;
        while *to_go > 0 {
            let rest = &length[length.len() - *to_go..];
            let gone = ready!(Pin::new(&mut self.stream).poll_write(cx, rest))?;
            if gone == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            *to_go -= gone;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Framed<S> {
    /// A frame is as long as the first write of it; later writes fill it. So nothing waits in a buffer here.
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if buf.is_empty() {
            return Poll::Ready(Ok(0));
        }
        if this.outgoing.left == 0 {
            this.begin(u16::try_from(buf.len()).unwrap_or(u16::MAX));
        }
        ready!(this.poll_begun(cx))?;
        let part = &buf[..this.outgoing.left.min(buf.len())];
        let gone = ready!(Pin::new(&mut this.stream).poll_write(cx, part))?;
        this.outgoing.left -= gone;
        Poll::Ready(Ok(gone))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.outgoing.left > 0 {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if !std::mem::replace(&mut this.outgoing.has_ended, true) {
            this.begin(0);
        }
        ready!(this.poll_begun(cx))?;
        Pin::new(&mut this.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    #[tokio::test]
    async fn what_is_written_is_read_however_narrow_the_way() {
        let data: Vec<u8> = (0..200_000_u32).map(|number| number as u8).collect();
        for room in [1, 2, 3, 1000, 1 << 20] {
            let (one, other) = duplex(room);
            let (mut one, mut other) = (Framed::new(one), Framed::new(other));
            let sent = data.clone();
            let sending = tokio::spawn(async move {
                let (first, second) = sent.split_at(100);
                one.write_all(first).await.unwrap();
                one.write_all(second).await.unwrap();
                one.shutdown().await.unwrap();
                let mut back = Vec::new();
                one.read_to_end(&mut back).await.unwrap();
                back
            });
            let mut come = Vec::new();
            other.read_to_end(&mut come).await.unwrap();
            assert!(come == data, "{room}");
            other.write_all(b"back").await.unwrap();
            other.shutdown().await.unwrap();
            assert_eq!(sending.await.unwrap(), b"back");
        }
    }

    #[tokio::test]
    async fn a_part_is_not_taken_for_all() {
        let (one, mut bytes) = duplex(1000);
        let mut one = Framed::new(one);
        one.write_all(b"hello").await.unwrap();
        one.write_all(b"!").await.unwrap();
        one.shutdown().await.unwrap();
        drop(one);
        let mut framed = Vec::new();
        bytes.read_to_end(&mut framed).await.unwrap();
        assert_eq!(framed, b"\x00\x05hello\x00\x01!\x00\x00");
        for cut in 0..framed.len() {
            let mut come = Vec::new();
            let read = Framed::new(&framed[..cut]).read_to_end(&mut come).await;
            assert_eq!(read.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
            assert!(b"hello!".starts_with(&come), "{cut}");
        }
    }
}
