//! Servers, and fronts before them, over loopback.

use std::net::SocketAddr;
use std::num::NonZeroU8;
use std::sync::Arc;
use std::time::Duration;

use baton_core::policy::Policy;
use baton_redsocks::front::{Counters, Front, Options, Plain, Servers};
use eop_protocol::Target;
use eop_protocol::wire::EopKey;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

pub const ANY: &str = "127.0.0.1:0";

/// Starts a server that gives back what it gets, with `by` added to each byte.
pub async fn echo(by: u8) -> SocketAddr {
    let listener = TcpListener::bind(ANY).await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut bytes = vec![0; 10_000];
                while let Ok(count @ 1..) = stream.read(&mut bytes).await {
                    let more: Vec<u8> = bytes[..count].iter().map(|b| b.wrapping_add(by)).collect();
                    stream.write_all(&more).await.unwrap();
                }
            });
        }
    });
    at
}

pub fn front(
    servers: Servers,
    key: Option<EopKey>,
    redirected_only: bool,
) -> (SocketAddr, Arc<Counters>) {
    let front = Front::bind(Options {
        listen: ANY.parse().unwrap(),
        servers,
        policy: Policy::RoundRobin,
        plain: Plain::Relay,
        key,
        redirected_only,
        // Longer than any pause of a busy machine: every client speaks at once.
        patience: Duration::from_secs(60),
    })
    .unwrap();
    let (at, counters) = (front.local_addr().unwrap(), front.counters());
    tokio::spawn(front.serve(std::future::pending()));
    (at, counters)
}

pub fn to(address: SocketAddr) -> Target {
    Target {
        address,
        weight: NonZeroU8::MIN,
    }
}
