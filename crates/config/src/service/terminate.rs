//! `tls = "terminate"`: the agent of each data server speaks TLS to clients, and HTTP to the server there.

use std::num::NonZeroU16;
use std::path::PathBuf;

use crate::reading::problem::Problem;
use crate::service::hsts::Hsts;
use crate::values::words::words;

/// How the agent speaks TLS in the server's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terminate {
    /// The files with certificates and their private keys, at least one. A path that is not absolute begins at the
    /// directory of the configuration file.
    pub certificates: Vec<PathBuf>,
    /// The port at which each local server listens, at the cluster address. It is not the service's own.
    pub server_port: NonZeroU16,
    /// What responses tell browsers about HTTPS, unless their servers do.
    pub hsts: Option<Hsts>,
    /// Whether clients are offered HTTP/2.
    pub http2: bool,
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
