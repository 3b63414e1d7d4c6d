//! Health probes of a server: does it accept a connection, does it answer a request?

mod here;
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
    /// An address translation leads connections to another network namespace or machine. Only
    /// [`probe_here`] finds this.
    Elsewhere(SocketAddr),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection(error) => write!(f, "{error}"),
            Self::Timeout(limit) => write!(f, "no answer within {limit:?}"),
            Self::Status(status) => write!(f, "status {status}"),
            Self::NotHttp(what) => write!(f, "not an HTTP/1 response: {what}"),
            Self::Elsewhere(target) => write!(
                f,
                "an address translation (DNAT) on this host leads connections to {target} elsewhere, as a \
                 published port of a container does, and would lead the clients' packets there too"
            ),
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
        exchange(stream, probe).await
    };
    timeout(limit, attempt)
        .await
        .unwrap_or(Err(Reason::Timeout(limit)))
}

/// The same for a server that must be on this host, at an address of this host: its end of the connection must
/// be a socket of this network namespace.
///
/// # Errors
/// The reason why the server did not pass.
pub async fn probe_here(target: SocketAddr, probe: &Probe, limit: Duration) -> Result<(), Reason> {
    let attempt = async {
        let stream = connect(target, None).await.map_err(Reason::Connection)?;
        here::check(&stream, target).await?;
        exchange(stream, probe).await
    };
    timeout(limit, attempt)
        .await
        .unwrap_or(Err(Reason::Timeout(limit)))
}

async fn exchange(stream: TcpStream, probe: &Probe) -> Result<(), Reason> {
    match probe {
        Probe::Tcp => Ok(()),
        Probe::Http(get) => get.exchange(stream).await,
    }
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
