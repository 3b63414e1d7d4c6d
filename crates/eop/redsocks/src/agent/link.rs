//! One connection to a server, and the protocol that the server speaks.

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

/// The protocol that a server was found to speak.
pub(super) enum Found {
    /// The server speaks EOP. Nothing has arrived on the connection but WELCOME, if that.
    Eop(TcpStream),
    /// The server speaks plain TCP, and nothing was sent to it.
    Plain(TcpStream),
    /// The server speaks plain TCP, but this connection cannot be used anymore.
    Spent,
}

/// Makes a decoder without a limit: messages are passed on as they arrive, so they may have any length.
pub(super) const fn decoder() -> Decoder {
    Decoder::new(u32::MAX)
}

pub(super) async fn connect(to: SocketAddr, within: Duration) -> io::Result<TcpStream> {
    dial(socket(to)?, to, within).await
}

/// Connects, and finds out what the server speaks: by the TCP option if it can be announced, else by HELLO.
pub(super) async fn find_out(
    to: SocketAddr,
    client: &mut Client,
    options: &Options,
) -> io::Result<Found> {
    let socket = socket(to)?;
    let announced = ulp::announce(&socket);
    let mut stream = dial(socket, to, options.connect_timeout).await?;
    // The client says HELLO even to its first server, because it probes.
    let hello = client.handle_connected().hello;
    if announced {
        if !ulp::agreed(&stream) {
            return Ok(Found::Plain(stream));
        }
        // Nothing needs to be sent. A WELCOME that comes nevertheless is accepted.
        return Ok(Found::Eop(stream));
    }
    let hello = Head::Hello(hello.unwrap_or_default()).bytes(0);
    match timeout(options.patience, ask(&mut stream, &hello, client)).await {
        Ok(Ok(true)) => Ok(Found::Eop(stream)),
        // The server sent something else, ended or reset the connection, or was silent.
        Ok(Ok(false) | Err(_)) | Err(_) => Ok(Found::Spent),
    }
}

/// Sends HELLO and waits for WELCOME. Returns `false` if the server sends something else.
async fn ask(stream: &mut TcpStream, hello: &[u8], client: &mut Client) -> io::Result<bool> {
    stream.write_all(hello).await?;
    let mut decoder = decoder();
    let mut byte = [0];
    loop {
        // These few bytes are read one by one, because bytes behind WELCOME belong to the session.
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
