//! What a channel tells its user.

use crate::wire::{Errno, Families, ListenerTag, SocketOptions, TakenPort, Way};
use baton_wire::Endpoint;

use super::ConnectionId;

/// Something happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The other end has said who it is.
    Up {
        /// The node's name.
        name: String,
    },
    /// The channel is lost; of each connection there is, or was, an event of its own. Listeners are gone.
    Down,
    /// The application node wants to listen; to be answered by [`Channel::answer_listen`](super::Channel::answer_listen).
    Listen {
        /// Its number.
        listener: ListenerTag,
        /// 0: any.
        port: u16,
        /// On which addresses.
        families: Families,
    },
    /// The application node listens no longer.
    Unlisten {
        /// Its number.
        listener: ListenerTag,
    },
    /// The I/O server listens.
    Listening {
        /// Our number.
        listener: ListenerTag,
        /// On which port.
        port: u16,
    },
    /// The I/O server does not, or no longer, listen.
    NotListening {
        /// Our number.
        listener: ListenerTag,
        /// Why.
        errno: Errno,
    },
    /// Ports that others of the I/O server's host have, all that there are now.
    Taken(Box<[TakenPort]>),
    /// The other end makes a connection; to be answered by accept or refuse.
    Asked {
        /// Its new name.
        id: ConnectionId,
        /// From where, and to where.
        way: Way,
    },
    /// A connection that we asked for is there.
    Made {
        /// Which one.
        id: ConnectionId,
        /// The cluster address and port that it uses.
        local: Endpoint,
    },
    /// It could not be made; its name means nothing any more.
    NotMade {
        /// Which one.
        id: ConnectionId,
        /// Why.
        errno: Errno,
    },
    /// There is something to receive: bytes, an end or an error.
    Readable(ConnectionId),
    /// There is room to send again.
    Writable(ConnectionId),
    /// The other end has closed it, or it broke; what has come can still be received.
    Gone(ConnectionId),
    /// Options for the socket.
    Options {
        /// Of which connection.
        id: ConnectionId,
        /// What to set.
        options: SocketOptions,
    },
}
