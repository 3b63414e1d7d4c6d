//! One connection to a server.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use eop_protocol::wire::Decoder;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Makes a decoder without a limit: messages are passed on as they arrive, so they may have any length.
pub(super) const fn decoder() -> Decoder {
    Decoder::new(u32::MAX)
}

pub(super) async fn connect(to: SocketAddr, within: Duration) -> io::Result<TcpStream> {
    let stream = timeout(within, TcpStream::connect(to))
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
