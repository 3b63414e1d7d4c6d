//! Tells what a client speaks by its first bytes.

use std::io;
use std::time::Duration;

use eop_protocol::wire::MAGIC;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

/// The protocol that a client speaks, with the bytes that it has sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Client {
    Eop(Vec<u8>),
    Plain(Vec<u8>),
    /// The client has closed the connection and sent nothing.
    Gone,
}

/// Waits for a client's first bytes. If `patience` is given, a client that is silent for that long is plain: its
/// server must speak first.
pub(super) async fn sniff(
    stream: &mut TcpStream,
    patience: Option<Duration>,
) -> io::Result<Client> {
    let deadline = patience.map(|patience| Instant::now() + patience);
    let mut first = Vec::new();
    loop {
        let more = stream.read_buf(&mut first);
        let count = match deadline {
            None => more.await?,
            Some(deadline) => match timeout_at(deadline, more).await {
                Ok(count) => count?,
                Err(_) => return Ok(Client::Plain(first)),
            },
        };
        let compared = first.len().min(MAGIC.len());
        if first[..compared] != MAGIC[..compared] {
            return Ok(Client::Plain(first));
        }
        if compared == MAGIC.len() {
            return Ok(Client::Eop(first));
        }
        match (count, first.is_empty()) {
            (0, true) => return Ok(Client::Gone),
            (0, false) => return Ok(Client::Plain(first)),
            _ => {}
        }
    }
}
