//! How a session can end, or a call be refused.

use std::net::SocketAddr;

use crate::wire::Refused;

/// Why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nobody answers at the only server there is.
    #[error("no connection to {server}, nor to one that was there before")]
    Unreachable {
        /// The last one tried.
        server: SocketAddr,
    },
    /// The connection is gone, and with it the answers to these requests; they may have been done.
    #[error(
        "the connection to {server} is gone; {unanswered} request(s) sent there have no answer and may have been done"
    )]
    Lost {
        /// Whose it was.
        server: SocketAddr,
        /// Requests without an answer.
        unanswered: usize,
    },
    /// Redirected to where it has been since the last answer.
    #[error("{server} was to be asked twice for one answer: servers redirect in a circle")]
    Loop {
        /// The server that comes twice.
        server: SocketAddr,
    },
    /// Too many servers for one answer.
    #[error("redirected {hops} times without an answer, the last time to {server}")]
    Hops {
        /// How many.
        hops: usize,
        /// Where it was to go next.
        server: SocketAddr,
    },
    /// A request that the session cannot keep, and so could not send again.
    #[error(
        "requests of {bytes} bytes wait for answers, more than the {limit} that are kept; receive first, or raise the limit"
    )]
    Full {
        /// With the new one.
        bytes: usize,
        /// What may be.
        limit: usize,
    },
    /// A message that has no place there.
    #[error("the peer sent a message that has no place in this state of the session")]
    Unexpected,
    /// The session is over at this end.
    #[error("this end of the session has ended, or was redirected away")]
    Ended,
    /// What the client showed is not good.
    #[error(transparent)]
    Refused(#[from] Refused),
}
