//! The errors of calls.

use std::io;
use std::net::SocketAddr;

/// Why a call did not do what it was to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// EREDO: the server redirected the client without an answer. The application must send the requests that have no
    /// answer again; they go to the new server.
    #[error("redirected without an answer: send {unanswered} request(s) again")]
    Redo {
        /// How many requests have no answer: the last ones sent.
        unanswered: usize,
    },
    /// The session cannot go on, or cannot take this request.
    #[error(transparent)]
    Session(#[from] eop_protocol::Error),
    /// The peer does not speak EOP as it should.
    #[error(transparent)]
    Protocol(#[from] eop_protocol::wire::Error),
    /// The client is plain and cannot be redirected: it must be served here.
    #[error("the peer {peer} is a plain one and cannot be redirected")]
    Plain {
        /// The client's address.
        peer: SocketAddr,
    },
    /// The message is longer than `slen`, the header's length field, can say.
    #[error("a message of {bytes} bytes is too long: 4 GiB less one is the most")]
    TooLong {
        /// The message's length.
        bytes: usize,
    },
    /// The operating system reported an error.
    #[error("{what}: {cause}")]
    Io {
        /// What was being done.
        what: &'static str,
        /// The system's error.
        cause: io::Error,
    },
}

impl Error {
    pub(crate) const fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self::Io { what, cause }
    }
}
