//! Saying in the SYN, and its answer, that an end speaks EOP.
//!
//! A protocol above TCP is named by the socket option `TCP_ULP` (as kTLS is). The kernel has none named
//! `eop`; where the BPF program of `baton eop attach` is attached to the process's control group, it has.
//! Before connect or listen the option announces EOP; on a connection it succeeds if both ends did.

use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::sys::socket::{setsockopt, sockopt::TcpUlp};

const EOP: &[u8] = b"eop";

/// What the handshake of a connection said, at an end that announced EOP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handshake {
    /// Both ends speak it.
    Agreed,
    /// The other one did not say so.
    Plain,
    /// This end could not say so: what answered was a SYN without the option, after others that were lost. So the
    /// peer must be found out otherwise.
    Unsaid,
}

/// `false`: this machine cannot, and the peer must be found out otherwise.
pub(crate) fn announce(socket: &impl AsFd) -> bool {
    setsockopt(socket, TcpUlp::default(), &EOP).is_ok()
}

pub(crate) fn handshake(connection: &impl AsFd) -> Handshake {
    match setsockopt(connection, TcpUlp::default(), &EOP) {
        Ok(()) => Handshake::Agreed,
        Err(Errno::ENOMSG) => Handshake::Unsaid,
        Err(_) => Handshake::Plain,
    }
}
