//! The reasons why a session ends, or a call is refused.

use std::net::SocketAddr;

use crate::wire::Refused;

/// Why a session ended, or a call was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nobody answers at the server, and there is no other server to go to.
    #[error("cannot connect to {server}, nor to an earlier server")]
    Unreachable {
        /// The server that was tried last.
        server: SocketAddr,
    },
    /// The connection is gone, and with it the answers to these requests. The requests may have been done.
    #[error(
        "the connection to {server} is gone; {unanswered} request(s) sent there have no answer and may have been done"
    )]
    Lost {
        /// The server at the other end of the connection.
        server: SocketAddr,
        /// How many requests have no answer.
        unanswered: usize,
    },
    /// The client was redirected to a server that it was sent to before, since the last answer.
    #[error("redirected to {server} twice without an answer: servers redirect in a circle")]
    Loop {
        /// The server that it was sent to twice.
        server: SocketAddr,
    },
    /// The client was redirected too often without an answer.
    #[error("redirected {hops} times without an answer, the last time to {server}")]
    Hops {
        /// How many redirects have come without an answer.
        hops: usize,
        /// The server that the client was to go to next.
        server: SocketAddr,
    },
    /// The session cannot keep this request, so it could not send it again after a redirect.
    #[error(
        "with this request {bytes} bytes would wait for answers, more than the {limit} that are kept; receive first, or raise the limit"
    )]
    Full {
        /// How many bytes would be kept, with this request.
        bytes: usize,
        /// The most bytes that may be kept.
        limit: usize,
    },
    /// The message has no place in this state of the session.
    #[error("the peer sent a message that is not allowed in this state of the session")]
    Unexpected,
    /// The session is not open.
    #[error(
        "the session is not open: it has ended, its client was redirected away, or it is still connecting"
    )]
    Ended,
    /// The client's token is missing or not valid.
    #[error(transparent)]
    Refused(#[from] Refused),
}
