//! The frames of the forwarding protocol.

use bytes::Bytes;

use super::{MAX_NAME, SocketOptions};
use baton_wire::Endpoint;

/// One of the two sides of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The application node, which makes the channel.
    Application,
    /// The I/O server.
    Io,
}

/// The number of a connection on its channel. It is free for another connection after ConnectionClosed or Exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u32);

impl Tag {
    /// The side that made the connection.
    pub const fn maker(self) -> Side {
        if self.0 & 1 == 1 {
            Side::Io
        } else {
            Side::Application
        }
    }
}

/// The number of a listener on its channel. The application node chooses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerTag(pub u32);

/// The IP versions of the cluster addresses to listen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Families {
    /// IPv4 alone.
    V4,
    /// IPv6 alone.
    V6,
    /// IPv4 and IPv6, as with an IPv6 socket without IPV6_V6ONLY.
    Both,
}

/// A port of the cluster addresses that another program has at the I/O server's host, so that no program can listen on
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TakenPort {
    /// The port's number.
    pub port: u16,
    /// The IP versions of the addresses on which the port is taken.
    pub families: Families,
}

/// A Linux error number; never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Errno(u16);

impl Errno {
    /// The largest error number that Linux can return.
    pub const MAX: u16 = 4095;

    /// Makes an error number, or returns `None` if `number` is none.
    pub const fn new(number: u16) -> Option<Self> {
        match number {
            1..=Self::MAX => Some(Self(number)),
            _ => None,
        }
    }

    /// The error number, 1 to [`Self::MAX`].
    pub const fn number(self) -> u16 {
        self.0
    }

    /// EIO: any error that has no number of its own.
    pub const IO: Self = Self(5);
    /// EPIPE: nobody reads what is sent.
    pub const BROKEN_PIPE: Self = Self(32);
    /// EPROTO: the other end broke the rules of the forwarding protocol.
    pub const PROTOCOL: Self = Self(71);
    /// EADDRINUSE: another program has the port.
    pub const ADDRESS_IN_USE: Self = Self(98);
    /// EADDRNOTAVAIL: there is no such cluster address.
    pub const ADDRESS_NOT_AVAILABLE: Self = Self(99);
    /// ENETUNREACH: there is no route to the other end.
    pub const NETWORK_UNREACHABLE: Self = Self(101);
    /// ENETDOWN: there is no channel.
    pub const NETWORK_DOWN: Self = Self(100);
    /// ENETRESET: the channel broke, and the connection with it.
    pub const NETWORK_RESET: Self = Self(102);
    /// ECONNABORTED: the connection was given up before it was made.
    pub const ABORTED: Self = Self(103);
    /// ECONNRESET: the connection was reset.
    pub const RESET: Self = Self(104);
    /// ECONNREFUSED: nobody takes the connection.
    pub const REFUSED: Self = Self(111);
}

/// The first frame of each end: it says who sends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The sender's side.
    pub side: Side,
    /// The epoch that frames to the sender must carry. It is another one for each channel.
    pub epoch: u32,
    name: Box<str>,
}

impl Hello {
    /// Makes a Hello. Returns `None` if the name is not 1 to [`MAX_NAME`] visible ASCII characters.
    pub fn new(side: Side, epoch: u32, name: &str) -> Option<Self> {
        let is_name = (1..=MAX_NAME).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_graphic());
        is_name.then(|| Self {
            side,
            epoch,
            name: name.into(),
        })
    }

    /// The node's name, as in the configuration.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The direction of a new connection, with its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A client's connection to a listener. The I/O server makes it.
    In {
        /// The listener's number.
        listener: ListenerTag,
        /// The address and port of the client.
        peer: Endpoint,
        /// The cluster address and port that it connected to.
        local: Endpoint,
    },
    /// A program's connection, made from the cluster address. The application node makes it.
    Out {
        /// The address and port to connect to.
        to: Endpoint,
        /// The options that the socket gets before it connects.
        options: SocketOptions,
    },
}

/// One frame. Its `limit` is L_r of the paper: how many bytes of the connection, counted from its beginning, its
/// receiver has room for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// The first frame in each direction.
    Hello(Hello),
    /// The sender wants to listen on a port. Only the application node sends this.
    Listen {
        /// A number that no listener of the channel has.
        listener: ListenerTag,
        /// The port, or 0 if the I/O server is to choose one.
        port: u16,
        /// The IP versions of the cluster addresses to listen on.
        families: Families,
    },
    /// The answer to Listen: the I/O server listens.
    Listening {
        /// The listener's number.
        listener: ListenerTag,
        /// The port that the I/O server listens on.
        port: u16,
    },
    /// The I/O server does not listen, or no longer listens.
    NotListening {
        /// The listener's number.
        listener: ListenerTag,
        /// The reason.
        errno: Errno,
    },
    /// The sender no longer listens. Only the application node sends this.
    Unlisten {
        /// The listener's number.
        listener: ListenerTag,
    },
    /// The sender makes a new connection.
    MakeConnection {
        /// A free tag of the sender's side.
        tag: Tag,
        /// L_r of the sender.
        limit: u64,
        /// The direction of the connection, with its ends.
        way: Way,
    },
    /// The answer to MakeConnection: the connection is made.
    ConnectionAccepted {
        /// The connection's tag.
        tag: Tag,
        /// L_r of the sender.
        limit: u64,
        /// The cluster address and port that the connection uses.
        local: Endpoint,
    },
    /// The answer to MakeConnection: the connection cannot be made.
    Exception {
        /// The connection's tag.
        tag: Tag,
        /// The reason.
        errno: Errno,
    },
    /// Bytes of a connection, 1 to [`MAX_MESSAGE`](super::MAX_MESSAGE).
    SendMessage {
        /// The connection's tag.
        tag: Tag,
        /// The bytes to deliver.
        message: Bytes,
    },
    /// The sender of this frame has room for more bytes of a connection.
    BufferAvailable {
        /// The connection's tag.
        tag: Tag,
        /// L_r of the sender.
        limit: u64,
    },
    /// The sender will send no more bytes of a connection: a FIN.
    Shutdown {
        /// The connection's tag.
        tag: Tag,
    },
    /// The sender neither reads nor writes the connection anymore.
    CloseConnection {
        /// The connection's tag.
        tag: Tag,
    },
    /// The answer to CloseConnection and Reset: the sender sends nothing more about the connection.
    ConnectionClosed {
        /// The connection's tag.
        tag: Tag,
    },
    /// The connection broke: a RST. ConnectionClosed is the answer, as to CloseConnection.
    Reset {
        /// The connection's tag.
        tag: Tag,
        /// The error that the receiver's next call must report.
        errno: Errno,
    },
    /// Options for the connection's socket at the I/O server. Only the application node sends this.
    SetOptions {
        /// The connection's tag.
        tag: Tag,
        /// The options to set.
        options: SocketOptions,
    },
    /// The complete list of ports that other programs at the I/O server's host have. Only the I/O server sends this.
    Taken {
        /// The ports, at most [`MAX_TAKEN`](super::MAX_TAKEN).
        ports: Box<[TakenPort]>,
    },
}
