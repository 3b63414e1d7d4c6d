//! Saying in the SYN, and its answer, that an end speaks EOP, where `baton eop attach` has made that possible.

use std::os::fd::AsFd;

use nix::sys::socket::{setsockopt, sockopt::TcpUlp};

const EOP: &[u8] = b"eop";

/// Before connect or listen. `false`: this machine cannot.
pub(crate) fn announce(socket: &impl AsFd) -> bool {
    setsockopt(socket, TcpUlp::default(), &EOP).is_ok()
}

/// Whether both ends of a connection announced it.
pub(crate) fn agreed(connection: &impl AsFd) -> bool {
    announce(connection)
}
