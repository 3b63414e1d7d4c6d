//! Between a client's TCP connection and a node's connection: bytes, ends and errors, both ways.
//!
//! Bytes are copied from the kernel once and to the kernel once, and nowhere in between, but for short messages.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::Tally;
use crate::VirtualStream;
use crate::shared::errno;

/// What is read from a client at once, at most.
const BLOCK: usize = 64 * 1024;

/// Shorter reads are copied out of the block, so that it need not be kept for them.
const SHORT: usize = 4096;

/// Who broke the connection.
enum Broken {
    Client(io::Error),
    Node,
}

pub(super) async fn run(tally: &Tally, client: Arc<TcpStream>, stream: VirtualStream) {
    // Until all is well: should this process be killed, the client must not take a part for the whole.
    reset(&client);
    match join(&client, &stream).await {
        Ok(()) => {
            Tally::count(&tally.finished);
            let _ = SockRef::from(&*client).set_linger(None);
        }
        Err(Broken::Client(error)) => {
            Tally::count(&tally.reset_by_client);
            stream.reset_with(errno(&error));
        }
        Err(Broken::Node) => Tally::count(&tally.reset_by_node),
    }
}

/// Makes the end of the connection a RST: an orderly one would pass a part for the whole.
pub(super) fn reset(client: &TcpStream) {
    // Fails only on a socket that is no socket; then there is nothing to end.
    let _ = SockRef::from(client).set_linger(Some(Duration::ZERO));
}

/// Until the node has closed its end and everything of it is at the client.
async fn join(client: &TcpStream, stream: &VirtualStream) -> Result<(), Broken> {
    let (mut is_read, mut is_written, mut is_gone) = (false, false, false);
    let (reading, writing) = (read(client, stream), write(client, stream));
    let (gone, breaking) = (stream.gone(), broken(client));
    tokio::pin!(reading, writing, gone, breaking);
    while !(is_gone && is_written) {
        tokio::select! {
            done = &mut reading, if !is_read => {
                done?;
                is_read = true;
            }
            done = &mut writing, if !is_written => {
                done?;
                is_written = true;
            }
            () = &mut gone, if !is_gone => {
                // Nobody is there to read what the client sends; closing the socket will tell it.
                (is_gone, is_read) = (true, true);
            }
            error = &mut breaking => return Err(Broken::Client(error)),
        }
    }
    Ok(())
}

/// Client to node.
async fn read(client: &TcpStream, stream: &VirtualStream) -> Result<(), Broken> {
    loop {
        if let Err(error) = stream.room().await {
            // The node reads no more, which is not an error yet, unless it says so.
            return match error.kind() {
                io::ErrorKind::BrokenPipe => Ok(()),
                _ => Err(Broken::Node),
            };
        }
        match read_some(client).await.map_err(Broken::Client)? {
            Some(bytes) => match stream.send(bytes) {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                    return Err(Broken::Node);
                }
                _ => {}
            },
            None => {
                stream.finish();
                return Ok(());
            }
        }
    }
}

async fn read_some(client: &TcpStream) -> io::Result<Option<Bytes>> {
    loop {
        client.readable().await?;
        // Only now: a client that says nothing costs no memory.
        let mut block = BytesMut::with_capacity(BLOCK);
        match client.try_read_buf(&mut block) {
            Ok(0) => return Ok(None),
            Ok(length) if length < SHORT => return Ok(Some(Bytes::copy_from_slice(&block))),
            Ok(_) => return Ok(Some(block.freeze())),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// Node to client.
async fn write(client: &TcpStream, stream: &VirtualStream) -> Result<(), Broken> {
    loop {
        let received = stream.receive(BLOCK).await.map_err(|_| Broken::Node)?;
        let Some(mut bytes) = received else {
            let ended = SockRef::from(client).shutdown(std::net::Shutdown::Write);
            return ended.map_err(Broken::Client);
        };
        while !bytes.is_empty() {
            client.writable().await.map_err(Broken::Client)?;
            match client.try_write(&bytes) {
                Ok(length) => drop(bytes.split_to(length)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(Broken::Client(error)),
            }
        }
    }
}

/// Waits for a RST, which must be seen also while nothing is read or written.
async fn broken(client: &TcpStream) -> io::Error {
    let ready = client.ready(Interest::ERROR).await;
    let error = ready.and_then(|_| client.take_error());
    match error {
        Ok(Some(error)) | Err(error) => error,
        // Somebody else has taken it, and says so; it was one in any case.
        Ok(None) => io::ErrorKind::ConnectionReset.into(),
    }
}
