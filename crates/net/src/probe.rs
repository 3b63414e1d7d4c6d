//! Health probes of a server: whether it accepts a connection, and whether it answers a request.

mod here;
mod http;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpStream, UnixStream};

pub use http::Get;

/// What a probe tries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// The server has to accept a connection.
    Tcp,
    /// The server has to answer a request with a status of 200-399.
    Http(Get),
}

/// Why a server did not pass. This is a finding about the server, not a failure of the probe.
#[derive(Debug)]
pub enum Reason {
    /// The server did not accept the connection, or ended it.
    Connection(io::Error),
    /// The unix socket cannot be connected to.
    Socket(PathBuf, io::Error),
    /// The server answered with another status.
    Status(u16),
    /// The server's answer is not HTTP/1, or its header is too long.
    NotHttp(&'static str),
    /// An address translation leads connections to another network namespace or machine.
    Elsewhere(SocketAddr),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection(error) => write!(f, "{error}"),
            Self::Socket(path, error) => {
                write!(f, "cannot connect to {}: {error}", path.display())?;
                match error.kind() {
                    io::ErrorKind::PermissionDenied => {
                        f.write_str("; let root, without CAP_DAC_OVERRIDE, write to the socket")
                    }
                    _ => Ok(()),
                }
            }
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

/// Probes a server that must be on this host, at an address of this host: its end of the connection must be a socket of
/// this network namespace. This is one attempt, from the start of the connection to the end of the answer's header,
/// however long that takes.
///
/// # Errors
/// The reason why the server did not pass.
pub async fn probe_here(target: SocketAddr, probe: &Probe) -> Result<(), Reason> {
    let stream = TcpStream::connect(target)
        .await
        .map_err(Reason::Connection)?;
    here::check(&stream, target).await?;
    match probe {
        Probe::Tcp => Ok(()),
        Probe::Http(get) => get.exchange(stream).await,
    }
}

/// Probes a server at a unix socket, to which connections begin with these bytes. This is one attempt, like
/// [`probe_here`].
///
/// # Errors
/// The reason why the server did not pass.
pub async fn probe_socket(path: &Path, first: &[u8], probe: &Probe) -> Result<(), Reason> {
    let mut stream = UnixStream::connect(path)
        .await
        .map_err(|error| Reason::Socket(path.to_owned(), error))?;
    stream.write_all(first).await.map_err(Reason::Connection)?;
    match probe {
        Probe::Tcp => Ok(()),
        Probe::Http(get) => get.exchange(stream).await,
    }
}
