//! Runs a channel on a link, until either end gives the link up.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::sync::Arc;

use baton_saps_protocol::wire::{Decoder, Frame};
use baton_saps_protocol::{Channel, HELLO_PATIENCE};
use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::task::JoinSet;

use crate::network::{Lane, Link};
use crate::shared::Shared;

/// About how many bytes are read at once.
const BLOCK: usize = 64 * 1024;

/// About how many bytes are written at once.
const BATCH: usize = 256 * 1024;

/// Messages that are no longer than this are copied behind their headers; longer ones are written from where they are.
const SHORT: usize = 1024;

/// Runs the channel on this link until the link ends, and returns the reason. All connections are then reset. `up` is
/// called once the other end's Hello has arrived.
pub(crate) async fn run(shared: &Arc<Shared>, link: Link, up: impl FnOnce()) -> io::Error {
    let lanes = link.lanes.len();
    shared.with(|state| state.channel.handle_link(shared.now(), lanes));
    let _guard = Guard(shared);
    let mut tasks = JoinSet::new();
    let Link {
        peer,
        lanes,
        keep: _keep,
    } = link;
    for (number, Lane { reader, writer }) in lanes.into_iter().enumerate() {
        tasks.spawn(read(Arc::clone(shared), peer, reader));
        tasks.spawn(write(Arc::clone(shared), number, writer));
    }
    let ended = async {
        match tasks.join_next().await {
            Some(Ok(Err(error))) => error,
            Some(Err(error)) => io::Error::other(error),
            // A lane ends only with an error, and there is at least one lane.
            Some(Ok(Ok(()))) | None => io::ErrorKind::UnexpectedEof.into(),
        }
    };
    tokio::pin!(ended);
    tokio::select! {
        error = &mut ended => return error,
        greeted = greet(shared) => match greeted {
            Ok(()) => up(),
            Err(error) => return error,
        }
    }
    ended.await
}

/// Tells the channel that its link is lost, even if the task is aborted.
struct Guard<'a>(&'a Shared);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.with(|state| state.channel.handle_loss());
    }
}

/// Waits for the other end's Hello.
async fn greet(shared: &Shared) -> io::Result<()> {
    let hello = poll_fn(|cx| shared.poll_up(cx));
    let timeout = shared.with(|state| state.channel.next_timeout());
    let patience = timeout.map_or(HELLO_PATIENCE, |until| until.since(shared.now()));
    let heard = tokio::time::timeout(patience, hello).await;
    heard.map_err(|_| {
        io::Error::new(
            io::ErrorKind::TimedOut,
            "the other end of the channel sent no Hello",
        )
    })
}

async fn read(
    shared: Arc<Shared>,
    peer: SocketAddr,
    mut reader: impl AsyncRead + Unpin,
) -> io::Result<()> {
    let mut decoder = Decoder::default();
    loop {
        shared.backlog().wait().await;
        let wanted = decoder.missing().max(BLOCK);
        decoder.buffer().reserve(wanted);
        if reader.read_buf(decoder.buffer()).await? == 0 {
            if let Err(error) = decoder.end() {
                shared.with(|state| state.channel.handle_malformed(true));
                return Err(invalid(error));
            }
            return Err(io::Error::new(
                io::ErrorKind::ConnectionAborted,
                "the other end has ended the channel",
            ));
        }
        shared.with(|state| {
            loop {
                match decoder.next() {
                    Ok(Some((epoch, frame))) => take(&mut state.channel, peer, epoch, frame)?,
                    Ok(None) => return Ok(()),
                    Err(error) => {
                        state.channel.handle_malformed(false);
                        return Err(invalid(error));
                    }
                }
            }
        })?;
    }
}

/// Gives a frame to the channel.
///
/// # Errors
/// The fault, if the channel cannot go on after it.
fn take(channel: &mut Channel, peer: SocketAddr, epoch: u32, frame: Frame) -> io::Result<()> {
    let Err(fault) = channel.handle_frame(epoch, frame) else {
        return Ok(());
    };
    if fault.breaks_channel() {
        return Err(invalid(fault));
    }
    // Only the first, the second, the fourth, … fault is logged, so that an end that breaks a rule with every frame
    // does not fill the disk.
    let times = channel.counters().broken_rules();
    if times.is_power_of_two() {
        tracing::warn!(%peer, %fault, times, "the other end of a channel sent a frame that it must not send");
    }
    Ok(())
}

async fn write(
    shared: Arc<Shared>,
    lane: usize,
    mut writer: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let mut heads = BytesMut::new();
    let mut chunks = VecDeque::new();
    loop {
        let mut size = 0;
        poll_fn(|cx| {
            shared.poll_frames(cx, lane, |epoch, frame| {
                frame.encode_head(epoch, &mut heads);
                size += 16;
                match frame.payload() {
                    Some(payload) if payload.len() > SHORT => {
                        size += payload.len();
                        chunks.push_back(heads.split().freeze());
                        chunks.push_back(payload.clone());
                    }
                    Some(payload) => {
                        size += payload.len();
                        heads.extend_from_slice(payload);
                    }
                    None => {}
                }
                size < BATCH
            })
        })
        .await;
        chunks.push_back(heads.split().freeze());
        write_all(&mut writer, &mut chunks).await?;
        writer.flush().await?;
    }
}

/// Writes the chunks without copying them, many with each call.
async fn write_all(
    writer: &mut (impl AsyncWrite + Unpin),
    chunks: &mut VecDeque<Bytes>,
) -> io::Result<()> {
    loop {
        while chunks.front().is_some_and(Bytes::is_empty) {
            chunks.pop_front();
        }
        if chunks.is_empty() {
            return Ok(());
        }
        let slices: Vec<IoSlice<'_>> = chunks
            .iter()
            .take(64)
            .map(|chunk| IoSlice::new(chunk))
            .collect();
        let mut written = writer.write_vectored(&slices).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        while let Some(chunk) = chunks.front_mut().filter(|_| written > 0) {
            let part = written.min(chunk.len());
            chunk.advance(part);
            written -= part;
            if chunk.is_empty() {
                chunks.pop_front();
            }
        }
    }
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
