//! A redirector, the front that it redirects to, and a server of one file behind that.

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU8;
use std::sync::Arc;
use std::time::Duration;

use baton_core::policy::Policy;
use baton_redsocks::front::{Counters, Front, Options, Plain, Servers as Who};
use eop_protocol::Target;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

pub struct Servers {
    pub redirector: SocketAddr,
    pub counters: Arc<Counters>,
    pub file: Arc<Vec<u8>>,
}

pub async fn start(size: usize) -> io::Result<Servers> {
    let file: Arc<Vec<u8>> = Arc::new((0..size).map(|_| fastrand::u8(..)).collect());
    let server = serve(Arc::clone(&file)).await?;
    let front = Front::bind(options(Who::Behind(server)))?;
    let target = Target {
        address: front.local_addr()?,
        weight: NonZeroU8::MIN,
    };
    tokio::spawn(front.serve(std::future::pending()));
    let redirector = Front::bind(options(Who::Others(vec![target])))?;
    let (address, counters) = (redirector.local_addr()?, redirector.counters());
    tokio::spawn(redirector.serve(std::future::pending()));
    Ok(Servers {
        redirector: address,
        counters,
        file,
    })
}

fn options(servers: Who) -> Options {
    Options {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        servers,
        policy: Policy::RoundRobin,
        plain: Plain::Location { alternative: None },
        key: None,
        redirected_only: false,
        patience: Duration::from_millis(200),
    }
}

async fn serve(file: Arc<Vec<u8>>) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, Arc::clone(&file)));
        }
    });
    Ok(address)
}

async fn answer(mut stream: TcpStream, file: Arc<Vec<u8>>) -> io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        file.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(&file).await?;
    stream.shutdown().await
}
