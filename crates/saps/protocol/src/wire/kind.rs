//! The kinds of frames, and how long the body of each may be.

use super::options::OPTIONS_BYTES;
use super::{MAX_MESSAGE, MAX_NAME, MAX_TAKEN};

/// The kind of a frame. The numbers are those on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// The first frame in each direction.
    Hello = 1,
    /// The sender wants to listen on a port.
    Listen = 2,
    /// The answer to Listen: the I/O server listens.
    Listening = 3,
    /// The I/O server does not listen, or no longer listens.
    NotListening = 4,
    /// The sender no longer listens.
    Unlisten = 5,
    /// The sender makes a new connection.
    MakeConnection = 6,
    /// The answer to MakeConnection: the connection is made.
    ConnectionAccepted = 7,
    /// The answer to MakeConnection: the connection cannot be made.
    Exception = 8,
    /// Bytes of a connection.
    SendMessage = 9,
    /// The sender has room for more bytes of a connection.
    BufferAvailable = 10,
    /// The sender will send no more bytes of a connection.
    Shutdown = 11,
    /// The sender neither reads nor writes the connection anymore.
    CloseConnection = 12,
    /// The answer to CloseConnection and Reset: the tag is free.
    ConnectionClosed = 13,
    /// The connection broke.
    Reset = 14,
    /// Options for the connection's socket at the I/O server.
    SetOptions = 15,
    /// The ports that no program can listen on.
    Taken = 16,
}

impl Kind {
    pub(super) const ALL: [Self; 16] = [
        Self::Hello,
        Self::Listen,
        Self::Listening,
        Self::NotListening,
        Self::Unlisten,
        Self::MakeConnection,
        Self::ConnectionAccepted,
        Self::Exception,
        Self::SendMessage,
        Self::BufferAvailable,
        Self::Shutdown,
        Self::CloseConnection,
        Self::ConnectionClosed,
        Self::Reset,
        Self::SetOptions,
        Self::Taken,
    ];

    /// The fewest and the most bytes that a body of this kind may have.
    pub(super) const fn bounds(self) -> (usize, usize) {
        match self {
            Self::Hello => (9, 8 + MAX_NAME),
            Self::Listen => (4, 4),
            Self::Listening | Self::NotListening | Self::Exception | Self::Reset => (2, 2),
            Self::MakeConnection => (52, 58),
            Self::ConnectionAccepted => (26, 26),
            Self::SendMessage => (1, MAX_MESSAGE),
            Self::BufferAvailable => (8, 8),
            Self::SetOptions => (OPTIONS_BYTES, OPTIONS_BYTES),
            Self::Taken => (0, 4 * MAX_TAKEN),
            Self::Unlisten | Self::Shutdown | Self::CloseConnection | Self::ConnectionClosed => {
                (0, 0)
            }
        }
    }
}
