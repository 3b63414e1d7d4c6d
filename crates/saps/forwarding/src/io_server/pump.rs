//! The pump carries bytes, ends and errors in both directions between a client's TCP connection and a node's
//! connection.
//!
//! Bytes are copied once from the kernel and once to the kernel, and nowhere in between, except for short messages.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use baton_core::counters::count;
use bytes::{Bytes, BytesMut};
use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::state::IoCounters;
use crate::VirtualStream;
use crate::shared::errno;

/// The most bytes that are read from a client at once.
const BLOCK: usize = 64 * 1024;

/// Reads shorter than this are copied out of the block, so that the block need not be kept for them.
const SHORT: usize = 4096;

/// The side that broke the connection.
enum Broken {
    Client(io::Error),
    Node,
}

pub(super) async fn run(counters: &IoCounters, client: Arc<TcpStream>, stream: VirtualStream) {
    // This holds until the connection ends regularly: if the process is killed before, the client must not mistake a
    // part for the whole.
    reset(&client);
    match join(&client, &stream).await {
        Ok(()) => {
            count(&counters.finished);
            let _ = SockRef::from(&*client).set_linger(None);
        }
        Err(Broken::Client(error)) => {
            count(&counters.reset_by_client);
            stream.reset_with(errno(&error));
        }
        Err(Broken::Node) => count(&counters.reset_by_node),
    }
}

/// Makes the connection end with a RST when its socket closes. With a FIN the client would mistake a part for the
/// whole.
pub(super) fn reset(client: &TcpStream) {
    // This fails only if the descriptor is no socket, and then there is nothing to end.
    let _ = SockRef::from(client).set_linger(Some(Duration::ZERO));
}

/// Carries bytes until the node has closed its end and the client's socket has all of its bytes.
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
                // Nobody reads what the client sends. Closing the socket will tell the client.
                (is_gone, is_read) = (true, true);
            }
            error = &mut breaking => return Err(Broken::Client(error)),
        }
    }
    Ok(())
}

/// Carries bytes from the client to the node.
async fn read(client: &TcpStream, stream: &VirtualStream) -> Result<(), Broken> {
    loop {
        if let Err(error) = stream.room().await {
            // The node no longer reads. This is an error only if the node says so.
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
        // Memory is taken only at this point, so that a client that sends nothing costs none.
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

/// Carries bytes from the node to the client.
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

/// Waits for a RST, which must be noticed even while nothing is read or written.
async fn broken(client: &TcpStream) -> io::Error {
    let ready = client.ready(Interest::ERROR).await;
    let error = ready.and_then(|_| client.take_error());
    match error {
        Ok(Some(error)) | Err(error) => error,
        // Another call has taken the error and reports it. The connection is broken in any case.
        Ok(None) => io::ErrorKind::ConnectionReset.into(),
    }
}
