//! What a call can end with.

use std::io;
use std::net::SocketAddr;

/// Why a call did not do what it says.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// EREDO: the server redirected the client without an answer. Send what has no answer again; it goes to
    /// the new server.
    #[error("redirected without an answer: send {unanswered} request(s) again")]
    Redo {
        /// How many, the last ones sent.
        unanswered: usize,
    },
    /// The session cannot go on, or not take this.
    #[error(transparent)]
    Session(#[from] eop_protocol::Error),
    /// The peer does not speak EOP as it should.
    #[error(transparent)]
    Protocol(#[from] eop_protocol::wire::Error),
    /// A plain client cannot be redirected: serve it here.
    #[error("the peer {peer} is a plain one and cannot be redirected")]
    Plain {
        /// Who.
        peer: SocketAddr,
    },
    /// A message that `slen` cannot say.
    #[error("a message of {bytes} bytes is too long: 4 GiB less one is the most")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// The system says no.
    #[error("{what}: {cause}")]
    Io {
        /// What was being done.
        what: &'static str,
        /// Why not.
        cause: io::Error,
    },
}

impl Error {
    pub(crate) const fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self::Io { what, cause }
    }
}
