//! Finds the socket of this host at the other end of a connection over loopback.

use std::net::SocketAddr;

use crate::{Error, Result, sock_diag};

/// The number by which the kernel identifies the socket at `local` that is connected to `remote`, as
/// `bpf_get_socket_cookie()` returns it. IPv4 addresses also find IPv6 sockets that use IPv4.
///
/// # Errors
/// [`Error::System`], with kind `NotFound` if there is no such socket.
pub fn socket_cookie(local: SocketAddr, remote: SocketAddr) -> Result<u64> {
    let doing = format!("look up the socket at {local} connected to {remote}");
    let found = sock_diag::socket_of(local, remote).map_err(Error::system(doing))?;
    Ok(u64::from_ne_bytes(found.header.socket_id.cookie))
}
