//! Reads and writes of a connection's two sockets, each of which waits until it can do something.

use std::future::{pending, poll_fn};
use std::io;
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::client::{LINGERS, end_in_order, has_ended, read_away};

/// Most bytes of one read.
pub(super) const PIECE: usize = 64 << 10;
/// A client that takes nothing for this long is let go, as nginx does (`send_timeout`).
pub(super) const STALL: Duration = Duration::from_secs(60);

/// Appends what has come, at most `PIECE` bytes. 0: the other side has ended. While nothing comes, this takes no memory.
pub(super) async fn read(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
) -> io::Result<usize> {
    poll_fn(|cx| poll_piece(stream, cx, buffer)).await
}

/// Does the same as [`read`] in a task that is polled.
pub(super) fn poll_piece(
    stream: &mut (impl AsyncRead + Unpin),
    cx: &mut Context<'_>,
    buffer: &mut Vec<u8>,
) -> Poll<io::Result<usize>> {
    let mut room = [MaybeUninit::uninit(); PIECE];
    let mut come = ReadBuf::uninit(&mut room);
    ready!(Pin::new(stream).poll_read(cx, &mut come))?;
    buffer.extend_from_slice(come.filled());
    Poll::Ready(Ok(come.filled().len()))
}

/// Does the same without waiting.
pub(super) fn read_now(stream: &TcpStream, buffer: &mut Vec<u8>) -> io::Result<usize> {
    let mut room = [MaybeUninit::uninit(); PIECE];
    let mut come = ReadBuf::uninit(&mut room);
    stream.try_read_buf(&mut come)?;
    buffer.extend_from_slice(come.filled());
    Ok(come.filled().len())
}

/// Does the same as [`read`] for a server's connection; waits for ever if there is none.
pub(super) async fn read_if(
    stream: Option<&mut (impl AsyncRead + Unpin)>,
    buffer: &mut Vec<u8>,
) -> io::Result<usize> {
    match stream {
        Some(stream) => read(stream, buffer).await,
        None => pending().await,
    }
}

/// Sends as much as there is room for.
pub(super) async fn write(stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    loop {
        stream.writable().await?;
        match stream.try_write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => (),
            other => return other,
        }
    }
}

/// Does the same, but gives up after `STALL`.
pub(super) async fn write_in_time(stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    timeout(STALL, write(stream, bytes)).await?
}

/// Sends all of the bytes, and takes them off.
pub(super) async fn write_all(stream: &TcpStream, bytes: &mut Vec<u8>) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = write_in_time(stream, bytes).await?;
        bytes.drain(..written);
    }
    Ok(())
}

/// Does the same as [`write`] for a server's connection; waits for ever if there is none.
pub(super) async fn write_if(
    stream: Option<&mut (impl AsyncWrite + Unpin)>,
    bytes: &[u8],
) -> io::Result<usize> {
    match stream {
        Some(stream) => stream.write(bytes).await,
        None => pending().await,
    }
}

/// Ends a connection in order, when all that was written has gone.
pub(super) async fn end(client: &mut TcpStream) {
    end_in_order(client);
    if SockRef::from(&*client).shutdown(Shutdown::Write).is_ok() {
        // A client that does not end has had its time.
        let _ = read_away(client, LINGERS).await;
    }
}

/// Waits until a RST has ended the connection, or the kernel has given it up.
pub(super) async fn reset(stream: &TcpStream) {
    while !has_ended(stream) {
        // An error means that the runtime ends.
        if stream.ready(Interest::ERROR).await.is_err() || has_failed(stream) {
            return;
        }
    }
}

/// Whether the kernel has noted an error, as when it could not encrypt.
pub(super) fn has_failed(stream: &TcpStream) -> bool {
    matches!(stream.take_error(), Ok(Some(_)))
}
