//! Clients that connect, wait, and then send their request. Each byte that they get is compared.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use baton_redsocks::agent::RedSocks;
use baton_virtual_sockets::{AppOptions, Far as _};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::servers::Servers;

#[derive(Clone, Copy)]
pub enum Kind {
    /// A plain client that follows a 307 itself.
    Http,
    /// The same client, whose connection an agent makes.
    Eop,
}

const REQUEST: &[u8] = b"GET /file HTTP/1.1\r\nHost: x\r\n\r\n";

/// Runs `count` clients at the same time; each sends one request.
pub async fn run(kind: Kind, servers: &Servers, count: usize, delay: Duration) -> io::Result<()> {
    let mut clients = JoinSet::new();
    for _ in 0..count {
        let (redirector, file) = (servers.redirector, Arc::clone(&servers.file));
        clients.spawn(async move {
            let answer = match kind {
                Kind::Http => {
                    let mut stream = TcpStream::connect(redirector).await?;
                    sleep(delay).await;
                    let answer = ask(&mut stream).await?;
                    let place = location(&answer).ok_or(io::ErrorKind::InvalidData)?;
                    ask(&mut TcpStream::connect(place).await?).await?
                }
                Kind::Eop => {
                    let mut stream = RedSocks::default()
                        .connect(redirector, AppOptions::default())
                        .await?
                        .stream;
                    sleep(delay).await;
                    ask(&mut stream).await?
                }
            };
            assert!(answer.ends_with(&file), "a wrong byte");
            io::Result::Ok(())
        });
    }
    while let Some(client) = clients.join_next().await {
        client??;
    }
    Ok(())
}

async fn ask(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> io::Result<Vec<u8>> {
    stream.write_all(REQUEST).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(answer)
}

fn location(answer: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(answer).ok()?;
    let place = text.split_once("Location: http://")?.1;
    Some(place.split_once('/')?.0.to_owned())
}
