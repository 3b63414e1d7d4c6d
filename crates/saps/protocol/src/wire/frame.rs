//! The frames.

use bytes::Bytes;

use super::{MAX_NAME, SocketOptions};
use baton_wire::Endpoint;

/// Which end of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The application node; it makes the channel.
    Application,
    /// The I/O server.
    Io,
}

impl Side {
    /// The other one.
    pub const fn other(self) -> Self {
        match self {
            Self::Application => Self::Io,
            Self::Io => Self::Application,
        }
    }
}

/// Which connection of a channel. Free for another one after ConnectionClosed or Exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u32);

impl Tag {
    /// Who made the connection.
    pub const fn maker(self) -> Side {
        if self.0 & 1 == 1 {
            Side::Io
        } else {
            Side::Application
        }
    }
}

/// Which listener of a channel; the application node chooses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerTag(pub u32);

/// Which cluster addresses to listen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Families {
    /// IPv4 alone.
    V4,
    /// IPv6 alone.
    V6,
    /// Every one, as an IPv6 socket without IPV6_V6ONLY does.
    Both,
}

/// A port of the cluster addresses that somebody else has at the I/O server's host: no program can listen there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TakenPort {
    /// Its number.
    pub port: u16,
    /// On the addresses of which IP version.
    pub families: Families,
}

/// A Linux error number; never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Errno(u16);

impl Errno {
    /// The largest that Linux can return.
    pub const MAX: u16 = 4095;

    /// `None` for what is no error number.
    pub const fn new(number: u16) -> Option<Self> {
        match number {
            1..=Self::MAX => Some(Self(number)),
            _ => None,
        }
    }

    /// The number.
    pub const fn number(self) -> u16 {
        self.0
    }

    /// EIO: an error without a number of its own.
    pub const IO: Self = Self(5);
    /// EPIPE: nobody reads what is sent.
    pub const BROKEN_PIPE: Self = Self(32);
    /// EPROTO: the other end broke the rules of the forwarding protocol.
    pub const PROTOCOL: Self = Self(71);
    /// EADDRINUSE.
    pub const ADDRESS_IN_USE: Self = Self(98);
    /// EADDRNOTAVAIL: there is no such cluster address.
    pub const ADDRESS_NOT_AVAILABLE: Self = Self(99);
    /// ENETUNREACH.
    pub const NETWORK_UNREACHABLE: Self = Self(101);
    /// ENETDOWN: there is no channel.
    pub const NETWORK_DOWN: Self = Self(100);
    /// ENETRESET: the channel broke, and the connection with it.
    pub const NETWORK_RESET: Self = Self(102);
    /// ECONNABORTED.
    pub const ABORTED: Self = Self(103);
    /// ECONNRESET.
    pub const RESET: Self = Self(104);
    /// ETIMEDOUT.
    pub const TIMED_OUT: Self = Self(110);
    /// ECONNREFUSED.
    pub const REFUSED: Self = Self(111);
}

/// Who speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Which end it is.
    pub side: Side,
    /// The number that frames to it carry from now on; another one for each channel.
    pub epoch: u32,
    name: Box<str>,
}

impl Hello {
    /// `None` if the name is not 1 to [`MAX_NAME`] visible ASCII characters.
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

/// Where a new connection goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A client's, to a listener. Made by the I/O server.
    In {
        /// Which one.
        listener: ListenerTag,
        /// The client.
        peer: Endpoint,
        /// The cluster address and port that it connected to.
        local: Endpoint,
    },
    /// From the cluster address. Made by the application node.
    Out {
        /// Whom to connect to.
        to: Endpoint,
        /// For the socket, before it connects.
        options: SocketOptions,
    },
}

/// One frame. `limit` is L_r of the paper: how many bytes of the connection, counted from its beginning, its
/// receiver has room for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// The first frame each way.
    Hello(Hello),
    /// Listen on a port for this node. Application node only.
    Listen {
        /// A new number.
        listener: ListenerTag,
        /// 0: the I/O server chooses.
        port: u16,
        /// On which cluster addresses.
        families: Families,
    },
    /// Listening.
    Listening {
        /// Which listener.
        listener: ListenerTag,
        /// On which port.
        port: u16,
    },
    /// Not, or no longer, listening.
    NotListening {
        /// Which listener.
        listener: ListenerTag,
        /// Why.
        errno: Errno,
    },
    /// Listen no longer. Application node only.
    Unlisten {
        /// Which listener.
        listener: ListenerTag,
    },
    /// A new connection.
    MakeConnection {
        /// A free number of the sender's side.
        tag: Tag,
        /// L_r at the maker.
        limit: u64,
        /// From where, and to where.
        way: Way,
    },
    /// It is made.
    ConnectionAccepted {
        /// Which one.
        tag: Tag,
        /// L_r at the acceptor.
        limit: u64,
        /// The cluster address and port that it uses.
        local: Endpoint,
    },
    /// It cannot be made.
    Exception {
        /// Which one.
        tag: Tag,
        /// Why.
        errno: Errno,
    },
    /// Bytes, 1 to [`MAX_MESSAGE`](super::MAX_MESSAGE).
    SendMessage {
        /// Of which connection.
        tag: Tag,
        /// The bytes.
        message: Bytes,
    },
    /// The sender of this frame has made room.
    BufferAvailable {
        /// For which connection.
        tag: Tag,
        /// L_r.
        limit: u64,
    },
    /// No more bytes will come of the sender: a FIN.
    Shutdown {
        /// Of which connection.
        tag: Tag,
    },
    /// The sender neither reads nor writes any more.
    CloseConnection {
        /// Which connection.
        tag: Tag,
    },
    /// Seen, and nothing more will come about it.
    ConnectionClosed {
        /// Which connection.
        tag: Tag,
    },
    /// The connection broke: a RST. Answered as CloseConnection is.
    Reset {
        /// Which one.
        tag: Tag,
        /// What the next call is to report.
        errno: Errno,
    },
    /// Options of the I/O server's socket. Application node only.
    SetOptions {
        /// Of which connection.
        tag: Tag,
        /// What to set.
        options: SocketOptions,
    },
    /// The ports that others of the I/O server's host have, all that there are now. I/O server only.
    Taken {
        /// At most [`MAX_TAKEN`](super::MAX_TAKEN).
        ports: Box<[TakenPort]>,
    },
}
