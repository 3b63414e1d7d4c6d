//! How an end says in its SYN or SYN-ACK that it speaks EOP, if `baton eop attach` has made that possible.

use std::os::fd::AsFd;

use nix::sys::socket::{setsockopt, sockopt::TcpUlp};

const EOP: &[u8] = b"eop";

/// Announces EOP; must be called before connect or listen. Returns `false` if this machine cannot announce it.
pub(crate) fn announce(socket: &impl AsFd) -> bool {
    setsockopt(socket, TcpUlp::default(), &EOP).is_ok()
}

/// Whether both ends of a connection announced EOP.
pub(crate) fn agreed(connection: &impl AsFd) -> bool {
    announce(connection)
}
