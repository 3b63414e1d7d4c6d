//! Web servers with the lab's pages. Each has its own configuration, pid file and logs below the
//! host's directory, so that the machine's own services are never touched.
//!
//! | page | answer |
//! |---|---|
//! | /whoami | the host's name and a newline |
//! | /health | `ok` |
//! | /empty /1b /4k /64k /1m /64m /256m | the same bytes on every host |
//! | /ds1/… /dsN/… | the host's name, a space, the path that was asked for |
//! | /dsN/4k and so on | nginx only: the same bytes as /4k |
//! | /dsN/client | nginx only: the host's name, the client's address, X-Forwarded-For and X-Forwarded-Proto |
//! | /upload | reads the whole body (chunked or not), answers its length; Apache and Go also its SHA-256 |
//!
//! nginx names the host in the header X-Served-By of every page.
//!
//! Every server writes one line for each request to `access.log`, except for /health:
//! `CLIENT-ADDRESS CLIENT-PORT "REQUEST" STATUS BYTES`.

mod apache;
pub(crate) mod files;
mod goserver;
mod nginx;
mod prepared;

use std::path::Path;

pub use files::{FILES, SUMS, file};

use self::prepared::Prepared;
use crate::error::Result;
use crate::file::{Host, Lab, Server, ServerKind, Thing};

/// Makes what servers of all labs share, if it is missing: the files, Apache's program for `/upload`, and
/// the Go server, as far as a host needs them.
pub(crate) fn provide(lab: &Lab, progress: &mut dyn FnMut(&str)) -> Result<()> {
    let kinds: Vec<ServerKind> = lab
        .hosts
        .iter()
        .flat_map(servers)
        .map(|one| one.kind)
        .collect();
    if !kinds.is_empty() {
        files::ensure(progress)?;
    }
    if kinds.contains(&ServerKind::Apache) {
        apache::provide()?;
    }
    if kinds.contains(&ServerKind::Go) {
        goserver::provide(progress)?;
    }
    Ok(())
}

/// The program that must be installed for a server.
pub(crate) fn program(kind: ServerKind) -> &'static str {
    match kind {
        ServerKind::Nginx => "nginx",
        ServerKind::Apache => "apache2",
        ServerKind::Go => "go",
    }
}

/// Writes a server's configuration below the host's directory, and returns the command that starts it.
pub(crate) fn prepare(host: &Host, server: &Server, directory: &Path) -> Result<Prepared> {
    match server.kind {
        ServerKind::Nginx => nginx::prepare(host, server, directory),
        ServerKind::Apache => apache::prepare(host, server, directory),
        ServerKind::Go => goserver::prepare(host, server, directory),
    }
}

fn servers(host: &Host) -> impl Iterator<Item = &Server> {
    host.run.iter().filter_map(|thing| match thing {
        Thing::Server(server) => Some(server),
        _ => None,
    })
}
