//! `[local]`: the settings of this machine only.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::reading::problem::Problem;
use crate::reading::schema::keys;
use crate::reading::value::{plain, text, value};
use crate::values::name::NodeName;

/// The settings of this machine only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Local {
    /// The node that this machine is. `None`: the node with the host's name.
    pub name: Option<NodeName>,
    /// The absolute path on a BPF file system where programs and maps are pinned.
    pub bpf_dir: PathBuf,
    /// The absolute path where the daemon keeps its state.
    pub run_dir: PathBuf,
    /// The address and port where metrics are served. `None`: they are not served.
    pub metrics: Option<SocketAddr>,
    /// The user as whom the process runs that speaks TLS in place of servers.
    pub tls_user: String,
    /// Whether the kernel may encrypt what TLS clients are sent.
    pub kernel_tls: bool,
    /// Whether the daemon applies a changed file by itself.
    pub watch: bool,
}

keys! {
    /// This section is only for this machine. It is usually not needed.
    Keys "[local]" {
        /// The name of the [[node]] that this machine is. Default: the host name.
        name: NodeName = text, example "cs1";
        /// Where programs and maps are pinned (a BPF file system) and where the daemon keeps its state.
        bpf_dir: PathBuf = value(absolute), default "/sys/fs/bpf/baton";
        run_dir: PathBuf = value(absolute), default "/run/baton";
        /// Prometheus metrics are at http://ADDRESS/metrics: what `baton status` says, also for each route, pool
        /// and data server. If empty, there are none.
        metrics: Option<SocketAddr> = value(socket_address), default "127.0.0.1:9277";
        /// The user as whom the process runs that speaks TLS for services with tls = "terminate". It needs no files of
        /// its own: the daemon reads the private keys for it.
        tls_user: String = plain, default "baton-tls";
        /// Whether the kernel encrypts long responses for services with tls = "terminate", if it can (kTLS, the module
        /// `tls`). If not, the process that speaks TLS does it.
        kernel_tls: bool = plain, default true;
        /// Whether a changed file is applied automatically, as `baton reload` would, a second after the change.
        watch: bool = plain, default false;
    }
}

impl Keys {
    /// The section, if all of it could be read.
    pub(crate) fn finish(self) -> Option<Local> {
        Some(Local {
            name: self.name.optional()?,
            bpf_dir: self.bpf_dir.value()?,
            run_dir: self.run_dir.value()?,
            metrics: self.metrics.value()?,
            tls_user: self.tls_user.value()?,
            kernel_tls: self.kernel_tls.value()?,
            watch: self.watch.value()?,
        })
    }
}

/// Parses the path of a key.
pub(crate) fn absolute(key: &str, text: String) -> Result<PathBuf, Problem> {
    if Path::new(&text).is_absolute() && !text.contains('\0') {
        return Ok(text.into());
    }
    Err(Problem::new(
        format!(
            "{key} = \"{}\" is not an absolute path",
            text.escape_debug()
        ),
        "write a path that begins with /",
    ))
}

fn socket_address(_key: &str, text: String) -> Result<Option<SocketAddr>, Problem> {
    if text.is_empty() {
        return Ok(None);
    }
    match text.parse::<SocketAddr>() {
        Ok(address) if address.port() != 0 => Ok(Some(address)),
        _ => Err(Problem::new(
            format!(
                "metrics = \"{}\" is not an address and a port",
                text.escape_debug()
            ),
            "write something like \"127.0.0.1:9277\", or \"\" for no metrics",
        )),
    }
}
