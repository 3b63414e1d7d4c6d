//! What the daemon wants of the process that speaks TLS, and what that reports.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use baton_tls::About;
use serde::{Deserialize, Serialize};

use crate::client::Ends;
use crate::proxy_protocol;

/// All that the process serves. Each service has an address of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Services that TLS clients reach.
    pub services: Vec<ServiceSettings>,
    /// Services whose clients are sent to HTTPS.
    pub redirects: Vec<RedirectSettings>,
}

impl Settings {
    /// Whether there is nothing to serve.
    pub fn is_empty(&self) -> bool {
        self.services.is_empty() && self.redirects.is_empty()
    }
}

/// One service that TLS clients reach.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceSettings {
    /// The name in the configuration, for messages.
    pub name: String,
    /// The cluster address and port.
    pub address: SocketAddrV4,
    /// The place where the local server listens.
    pub server: ServerAddress,
    /// Whether clients are offered HTTP/2.
    pub http2: bool,
    /// The files with certificates and their keys.
    pub certificates: Vec<PathBuf>,
    /// The longest time that a handshake, or the head of a request, may take.
    pub head_timeout: Duration,
    /// The mark of [`crate::Routing`].
    pub mark: u32,
    /// Whether requests are for different data servers, as the service's routes say.
    pub has_routes: bool,
    /// The value of Strict-Transport-Security for responses without this field.
    pub hsts: Option<String>,
    /// Whether the kernel may make the records that clients are sent.
    pub kernel_tls: bool,
}

/// The place where a local server listens for HTTP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServerAddress {
    /// This port of the cluster address. The server sees the client's own address.
    Port(u16),
    /// A unix socket.
    Socket {
        /// The absolute path of the socket.
        path: PathBuf,
        /// How the server is told the client's address.
        client_address: ClientAddress,
    },
}

impl ServerAddress {
    /// The address of this client, if the head of each of its requests is to say it.
    pub(crate) fn forwarded_for(&self, ends: &Ends) -> Option<Ipv4Addr> {
        match self {
            Self::Socket {
                client_address: ClientAddress::ForwardedFor,
                ..
            } => Some(*ends.client.ip()),
            Self::Port(_) | Self::Socket { .. } => None,
        }
    }
}

/// How a server at a unix socket is told the client's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClientAddress {
    /// By the header field X-Forwarded-For of each request.
    ForwardedFor,
    /// By version 1 of the PROXY protocol.
    ProxyV1,
    /// By version 2 of the PROXY protocol.
    ProxyV2,
}

impl ClientAddress {
    /// The bytes with which a connection to the server begins. They are empty if the heads of requests say the address.
    pub fn header(self, ends: &Ends) -> Vec<u8> {
        match self {
            Self::ForwardedFor => Vec::new(),
            Self::ProxyV1 => proxy_protocol::version_1(ends),
            Self::ProxyV2 => proxy_protocol::version_2(ends),
        }
    }
}

/// One service whose clients speak HTTP and are sent to HTTPS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedirectSettings {
    /// The name in the configuration, for messages.
    pub name: String,
    /// The cluster address and port.
    pub address: SocketAddrV4,
    /// The port of HTTPS at the same address.
    pub https_port: u16,
    /// The longest time that the head of a request may take.
    pub head_timeout: Duration,
}

/// What the process answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Report {
    /// The settings are in use. `warnings` are about certificates.
    Applied {
        /// What an operator should change.
        warnings: Vec<String>,
        /// The certificates of all services.
        certificates: Vec<Certificate>,
    },
    /// The settings cannot be used, and those from before stay in use.
    Refused {
        /// What is wrong, where, and what to do.
        why: String,
    },
}

/// A certificate that clients of a service are shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate {
    /// The service's name in the configuration.
    pub service: String,
    /// The file.
    pub file: String,
    /// The first name that the certificate is for; empty if it is for none.
    pub name: String,
    /// When it expires, in seconds since 1970.
    pub not_after: u64,
}

impl Certificate {
    pub(super) fn of(service: &str, about: &About) -> Self {
        let not_after = about.valid.end.duration_since(SystemTime::UNIX_EPOCH);
        Self {
            service: service.to_owned(),
            file: about.file.display().to_string(),
            name: about.names.first().cloned().unwrap_or_default(),
            // A time before 1970 is as long ago.
            not_after: not_after.map_or(0, |time| time.as_secs()),
        }
    }
}
