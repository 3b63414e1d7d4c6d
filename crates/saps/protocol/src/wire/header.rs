//! What every frame begins with.

use super::options::OPTIONS_BYTES;
use super::{FrameError, MAX_MESSAGE, MAX_NAME, MAX_TAKEN};

/// Bytes of a header.
pub const HEADER_BYTES: usize = 16;

/// What a frame says. The numbers are those on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// The first frame each way.
    Hello = 1,
    /// Listen on a port.
    Listen = 2,
    /// The answer: done.
    Listening = 3,
    /// The answer, or later: not, or no longer.
    NotListening = 4,
    /// Listen no longer.
    Unlisten = 5,
    /// A new connection.
    MakeConnection = 6,
    /// The answer: it is made.
    ConnectionAccepted = 7,
    /// The answer: it is not.
    Exception = 8,
    /// Bytes of a connection.
    SendMessage = 9,
    /// More may be sent.
    BufferAvailable = 10,
    /// No more will be sent.
    Shutdown = 11,
    /// The sender has no more to do with the connection.
    CloseConnection = 12,
    /// The answer to CloseConnection and Reset: the tag is free.
    ConnectionClosed = 13,
    /// The connection broke.
    Reset = 14,
    /// Options of the I/O server's socket.
    SetOptions = 15,
    /// The ports that programs cannot have.
    Taken = 16,
}

impl Kind {
    const ALL: [Self; 16] = [
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

    /// The fewest and the most bytes of its body.
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

/// A frame's header, with a length that its kind may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What the frame says.
    pub kind: Kind,
    /// The number that the receiver gave in its Hello.
    pub epoch: u32,
    /// Which connection or listener; 0 in a Hello.
    pub tag: u32,
    /// Bytes of the body.
    pub length: u32,
}

impl Header {
    /// The bytes of a header.
    pub fn encode(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0] = self.kind as u8;
        bytes[4..8].copy_from_slice(&self.epoch.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.tag.to_be_bytes());
        bytes[12..].copy_from_slice(&self.length.to_be_bytes());
        bytes
    }

    /// The header that these bytes are.
    ///
    /// # Errors
    /// [`FrameError::UnknownKind`], [`FrameError::NotZero`], [`FrameError::Oversized`], [`FrameError::Undersized`].
    pub fn decode(bytes: [u8; HEADER_BYTES]) -> Result<Self, FrameError> {
        let [
            kind,
            z1,
            z2,
            z3,
            e1,
            e2,
            e3,
            e4,
            t1,
            t2,
            t3,
            t4,
            l1,
            l2,
            l3,
            l4,
        ] = bytes;
        let found = Kind::ALL.into_iter().find(|known| *known as u8 == kind);
        let kind = found.ok_or(FrameError::UnknownKind { found: kind })?;
        if [z1, z2, z3] != [0; 3] {
            return Err(FrameError::NotZero { kind });
        }
        let length = u32::from_be_bytes([l1, l2, l3, l4]);
        let (min, max) = kind.bounds();
        if length as usize > max {
            return Err(FrameError::Oversized { kind, length, max });
        }
        if (length as usize) < min {
            return Err(FrameError::Undersized { kind, length, min });
        }
        Ok(Self {
            kind,
            epoch: u32::from_be_bytes([e1, e2, e3, e4]),
            tag: u32::from_be_bytes([t1, t2, t3, t4]),
            length,
        })
    }
}
