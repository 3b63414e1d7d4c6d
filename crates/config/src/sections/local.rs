//! `[local]`: the settings of this machine only.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use toml::Spanned;

use crate::reading::field::{Field, Parsed, parse};
use crate::reading::problem::Problem;
use crate::reading::raw::RawLocal;
use crate::reading::report::Report;
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
    /// Whether the daemon applies a changed file by itself.
    pub watch: bool,
}

/// [`Local`], with the place of the name, which is looked up among the nodes later.
pub(crate) struct Draft {
    pub(crate) name: Option<Spanned<NodeName>>,
    pub(crate) local: Option<Local>,
}

impl Draft {
    pub(crate) fn parse(report: &mut Report<'_>, raw: RawLocal) -> Self {
        let name = parse(report, "name", raw.name, |text| text.parse::<NodeName>());
        let mut dir =
            |key: &str, field: Field<String>| parse(report, key, field, |text| absolute(key, text));
        let bpf_dir = dir("bpf_dir", raw.bpf_dir);
        let run_dir = dir("run_dir", raw.run_dir);
        let metrics = parse(report, "metrics", raw.metrics, socket_address);
        let watch = parse(report, "watch", raw.watch, Ok);
        let name_at = match &name {
            Parsed::Right(name) => Some(name.clone()),
            _ => None,
        };
        let local = (|| {
            Some(Local {
                name: name.optional()?,
                bpf_dir: bpf_dir.or("/sys/fs/bpf/baton".into())?,
                run_dir: run_dir.or("/run/baton".into())?,
                metrics: metrics.or(Some(SocketAddr::from(([127, 0, 0, 1], 9277))))?,
                watch: watch.or(false)?,
            })
        })();
        Self {
            name: name_at,
            local,
        }
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

fn socket_address(text: String) -> Result<Option<SocketAddr>, Problem> {
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
