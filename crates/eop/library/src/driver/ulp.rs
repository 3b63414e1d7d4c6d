//! How an end says in its SYN or SYN-ACK that it speaks EOP.
//!
//! The socket option `TCP_ULP` names a protocol above TCP (kTLS uses it). The kernel has no protocol `eop`, but the
//! BPF program of `baton eop attach` provides it for the control group that it is attached to. Before connect or
//! listen, the option announces EOP. On a connection, it succeeds if both ends announced EOP.

use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::sys::socket::{setsockopt, sockopt::TcpUlp};

const EOP: &[u8] = b"eop";

/// What the handshake of a connection said, for an end that announced EOP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handshake {
    /// Both ends speak EOP.
    Agreed,
    /// The other end did not announce EOP.
    Plain,
    /// This end could not announce EOP: earlier SYNs were lost, and the one that was answered had no option. So the
    /// other end's protocol must be found out otherwise.
    Unsaid,
}

/// Announces EOP. Returns `false` if this machine cannot; then the other end's protocol must be found out otherwise.
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
