//! `tls = "terminate"`: the agent of each data server speaks TLS to clients, and HTTP to the server there.

use std::num::NonZeroU16;
use std::path::PathBuf;

use crate::reading::problem::Problem;
use crate::sections::local::absolute;
use crate::service::hsts::Hsts;
use crate::values::words::words;

/// How the agent speaks TLS in the server's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terminate {
    /// The files with certificates and their private keys, at least one. A path that is not absolute begins at the
    /// directory of the configuration file.
    pub certificates: Vec<PathBuf>,
    /// How the agent reaches the local server.
    pub server: LocalServer,
    /// What responses tell browsers about HTTPS, unless their servers do.
    pub hsts: Option<Hsts>,
    /// Whether clients are offered HTTP/2.
    pub http2: bool,
}

/// How the agent of a data server reaches the server there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocalServer {
    /// The server listens at this port of the cluster address. It is not the service's own.
    Port(NonZeroU16),
    /// The server listens at a unix socket.
    Socket {
        /// The absolute path of the socket.
        path: PathBuf,
        /// How the server is told the client's address.
        client_address: ClientAddress,
    },
}

words! {
    /// How a server at a unix socket is told the client's address.
    pub enum ClientAddress "client_address" {
        /// In the header field X-Forwarded-For of each request.
        ForwardedFor = "x-forwarded-for",
        /// In a line of text at the beginning of each connection, by version 1 of the PROXY protocol.
        ProxyV1 = "proxy-v1",
        /// In bytes at the beginning of each connection, by version 2 of the PROXY protocol.
        ProxyV2 = "proxy-v2",
    }
}

words! {
    /// Who speaks TLS to the clients of a service.
    pub(crate) enum TlsMode "tls" {
        /// The local servers, which have the keys.
        Pass = "pass",
        /// The agent of each data server.
        Terminate = "terminate",
    }
}

/// Reads the path of a file with a certificate.
pub(crate) fn path(key: &str, path: String) -> Result<PathBuf, Problem> {
    if path.is_empty() || path.contains('\0') {
        return Err(Problem::new(
            format!(
                "{key} has a path that no file has: \"{}\"",
                path.escape_debug()
            ),
            "write the path of a PEM file, like \"www.example.org.pem\"",
        ));
    }
    Ok(path.into())
}

/// The longest path that the address of a socket has room for, with a zero behind it (unix(7)).
const LONGEST_SOCKET: usize = 107;

/// Reads the path of a unix socket.
pub(crate) fn socket(key: &str, path: String) -> Result<PathBuf, Problem> {
    let path = absolute(key, path)?;
    let length = path.as_os_str().len();
    if length > LONGEST_SOCKET {
        return Err(Problem::new(
            format!(
                "{key} has a path of {length} bytes, and a socket's has at most {LONGEST_SOCKET}"
            ),
            "have the server listen at a shorter path, like \"/run/nginx/web.sock\"",
        ));
    }
    Ok(path)
}
