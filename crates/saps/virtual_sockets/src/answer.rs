//! The agent's answer to a call: a SYN to the program's socket, which waits in SYN_SENT. Both ends open the connection
//! at the same time (RFC 9293, 3.5), so the program's connect() is done when the agent's is.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use baton_net::socket_cookie;
use tokio::{
    net::{TcpSocket, TcpStream},
    time::sleep,
};

use crate::{port::shared, relay::prepare};

/// A pair of ports whose last connection is in TIME_WAIT may be used again after a second at most, because
/// both ends are on this host (`tcp_tw_reuse`, whose default is loopback).
const TIME_WAIT: Duration = Duration::from_millis(1200);
const PAUSE: Duration = Duration::from_millis(50);

/// Connects to the program's socket at `at`, which `cookie` identifies. The cookie is checked once the connection is
/// made: by then the port may belong to another socket, which wants another peer.
pub(crate) async fn answer(at: SocketAddr, port: u16, cookie: u64) -> io::Result<TcpStream> {
    let mut waited = Duration::ZERO;
    let stream = loop {
        match attempt(at, port).await {
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable && waited < TIME_WAIT => {
                sleep(PAUSE).await;
                waited += PAUSE;
            }
            other => break other?,
        }
    };
    let found = socket_cookie(at, stream.local_addr()?).map_err(io::Error::other)?;
    if found != cookie {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(stream)
}

async fn attempt(at: SocketAddr, port: u16) -> io::Result<TcpStream> {
    let socket = shared(SocketAddr::new(loopback(at), port))?;
    prepare(&socket)?;
    TcpSocket::from_std_stream(socket.into()).connect(at).await
}

/// The loopback address of the same IP version, to which the program's hook sent the SYN.
fn loopback(at: SocketAddr) -> IpAddr {
    match at {
        SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    }
}
