//! One connection to a server, and what it speaks.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use eop_protocol::Client;
use eop_protocol::wire::{Decoder, Head, Piece};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use super::Options;
use crate::ulp;

/// What a server was found to speak.
pub(super) enum Found {
    /// EOP. Nothing has come but WELCOME, if that.
    Eop(TcpStream),
    /// Plain TCP, and nothing was said to it.
    Plain(TcpStream),
    /// Plain TCP, but this connection to it is spent.
    Spent,
}

/// Messages are handed on as they come: any length is right.
pub(super) const fn decoder() -> Decoder {
    Decoder::new(u32::MAX)
}

pub(super) async fn connect(to: SocketAddr, within: Duration) -> io::Result<TcpStream> {
    dial(socket(to)?, to, within).await
}

/// Connects, and asks by the option, or else by HELLO.
pub(super) async fn find_out(
    to: SocketAddr,
    client: &mut Client,
    options: &Options,
) -> io::Result<Found> {
    let socket = socket(to)?;
    let announced = ulp::announce(&socket);
    let mut stream = dial(socket, to, options.connect_timeout).await?;
    // A client that is at its server says HELLO, because it probes.
    let hello = client.handle_connected().hello;
    if announced {
        if !ulp::agreed(&stream) {
            return Ok(Found::Plain(stream));
        }
        // Nothing needs to be said, and if a WELCOME came it would be no surprise.
        return Ok(Found::Eop(stream));
    }
    let hello = Head::Hello(hello.unwrap_or_default()).bytes(0);
    match timeout(options.patience, ask(&mut stream, &hello, client)).await {
        Ok(Ok(true)) => Ok(Found::Eop(stream)),
        // Something else, an end, a reset, or silence.
        Ok(Ok(false) | Err(_)) | Err(_) => Ok(Found::Spent),
    }
}

/// Waits for WELCOME. `false`: it says something else.
async fn ask(stream: &mut TcpStream, hello: &[u8], client: &mut Client) -> io::Result<bool> {
    stream.write_all(hello).await?;
    let mut decoder = decoder();
    let mut byte = [0];
    loop {
        // Byte by byte, for these few: what is behind WELCOME is the session's.
        if stream.read(&mut byte).await? == 0 {
            return Ok(false);
        }
        let mut bytes = &byte[..];
        loop {
            match decoder.next(&mut bytes) {
                Ok(Some(Piece::Head(Head::Welcome, _))) => {
                    if client.handle_message(&Head::Welcome).is_err() {
                        return Ok(false);
                    }
                }
                Ok(Some(Piece::End)) => return Ok(true),
                Ok(None) => break,
                Ok(Some(_)) | Err(_) => return Ok(false),
            }
        }
    }
}

fn socket(to: SocketAddr) -> io::Result<TcpSocket> {
    let socket = match to {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    socket.set_nodelay(true)?;
    Ok(socket)
}

async fn dial(socket: TcpSocket, to: SocketAddr, within: Duration) -> io::Result<TcpStream> {
    timeout(within, socket.connect(to))
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
