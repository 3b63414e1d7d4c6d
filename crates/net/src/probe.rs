//! Health probes of a server: does it accept a connection, does it answer a request?

mod http;

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

pub use http::Get;

/// What is tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// A connection is accepted.
    Tcp,
    /// A request is answered with a status of 200-399.
    Http(Get),
}

/// Why a server did not pass. A finding about the server, not a failure of the probe.
#[derive(Debug)]
pub enum Reason {
    /// It did not accept the connection, or ended it.
    Connection(io::Error),
    /// It took too long.
    Timeout(Duration),
    /// It answered with another status.
    Status(u16),
    /// What it answered is not HTTP/1, or a header that is too long.
    NotHttp(&'static str),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection(error) => write!(f, "{error}"),
            Self::Timeout(limit) => write!(f, "no answer within {limit:?}"),
            Self::Status(status) => write!(f, "status {status}"),
            Self::NotHttp(what) => write!(f, "not an HTTP/1 response: {what}"),
        }
    }
}

/// Tries once, for at most `limit` from the start of the connection to the end of the answer's
/// header. `source`: connect from this address of the host; `None`: the kernel chooses.
///
/// # Errors
/// The reason why the server did not pass.
pub async fn probe(
    target: SocketAddr,
    source: Option<IpAddr>,
    probe: &Probe,
    limit: Duration,
) -> Result<(), Reason> {
    let attempt = async {
        let stream = connect(target, source).await.map_err(Reason::Connection)?;
        match probe {
            Probe::Tcp => Ok(()),
            Probe::Http(get) => get.exchange(stream).await,
        }
    };
    timeout(limit, attempt)
        .await
        .unwrap_or(Err(Reason::Timeout(limit)))
}

async fn connect(target: SocketAddr, source: Option<IpAddr>) -> io::Result<TcpStream> {
    let socket = if target.is_ipv4() {
        TcpSocket::new_v4()
    } else {
        TcpSocket::new_v6()
    }?;
    if let Some(source) = source {
        socket.bind(SocketAddr::new(source, 0))?;
    }
    socket.connect(target).await
}
