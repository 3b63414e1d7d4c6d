//! Saying in the SYN, and its answer, that an end speaks EOP.
//!
//! A protocol above TCP is named by the socket option `TCP_ULP` (as kTLS is). The kernel has none named
//! `eop`; where the BPF program of `baton eop attach` is attached to the process's control group, it has.
//! Before connect or listen the option announces EOP; on a connection it succeeds if both ends did.

use std::os::fd::AsFd;

use nix::sys::socket::{setsockopt, sockopt::TcpUlp};

const EOP: &[u8] = b"eop";

/// `false`: this machine cannot, and the peer must be found out otherwise.
pub(crate) fn announce(socket: &impl AsFd) -> bool {
    setsockopt(socket, TcpUlp::default(), &EOP).is_ok()
}

/// Whether both ends of a connection announced it.
pub(crate) fn agreed(connection: &impl AsFd) -> bool {
    announce(connection)
}
