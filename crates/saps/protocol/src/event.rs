//! The events of a channel, which tell its user what happened.

use crate::wire::{Errno, Families, ListenerTag, SocketOptions, TakenPort, Way};
use baton_wire::Endpoint;

use super::ConnectionId;

/// One event of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The other end has said who it is: the channel is up.
    Up {
        /// The node's name.
        name: String,
    },
    /// The channel is lost, and its listeners are gone. Each connection that its user has not closed has had an event
    /// of its own.
    Down,
    /// The application node wants to listen; [`Channel::answer_listen`](super::Channel::answer_listen) must answer.
    Listen {
        /// The listener's number.
        listener: ListenerTag,
        /// The port, or 0 for any port.
        port: u16,
        /// The IP versions of the cluster addresses to listen on.
        families: Families,
    },
    /// The application node listens no longer.
    Unlisten {
        /// The listener's number.
        listener: ListenerTag,
    },
    /// The I/O server listens.
    Listening {
        /// The number of this end's listener.
        listener: ListenerTag,
        /// The port that the I/O server listens on.
        port: u16,
    },
    /// The I/O server does not listen, or no longer listens.
    NotListening {
        /// The number of this end's listener.
        listener: ListenerTag,
        /// The reason.
        errno: Errno,
    },
    /// The complete list of ports that other programs at the I/O server's host have.
    Taken(Box<[TakenPort]>),
    /// The other end makes a connection. [`Channel::accept`](super::Channel::accept) or
    /// [`Channel::refuse`](super::Channel::refuse) must answer.
    Asked {
        /// The connection's name at this end.
        id: ConnectionId,
        /// The direction of the connection, with its ends.
        way: Way,
    },
    /// A connection that this end asked for is made.
    Made {
        /// The connection's name at this end.
        id: ConnectionId,
        /// The cluster address and port that it uses.
        local: Endpoint,
    },
    /// A connection that this end asked for could not be made; its name is no longer valid.
    NotMade {
        /// The connection's name at this end.
        id: ConnectionId,
        /// The reason.
        errno: Errno,
    },
    /// The connection has something to receive: bytes, an end or an error.
    Readable(ConnectionId),
    /// The connection has room to send again.
    Writable(ConnectionId),
    /// The other end has closed the connection, or the connection broke. Bytes that have arrived can still be
    /// received.
    Gone(ConnectionId),
    /// The other end wants to set options of the connection's socket.
    Options {
        /// The connection's name at this end.
        id: ConnectionId,
        /// The options to set.
        options: SocketOptions,
    },
}
