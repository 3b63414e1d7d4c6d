//! The header that every frame begins with.

use bytes::Buf as _;

use super::{FrameError, Kind};

/// The length of a header in bytes.
pub const HEADER_BYTES: usize = 16;

/// A frame's header. Its length is one that its kind may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The frame's kind.
    pub kind: Kind,
    /// The epoch that the receiver gave in its Hello; 0 in a Hello.
    pub epoch: u32,
    /// The number of the connection or listener that the frame is about; 0 if it is about neither.
    pub tag: u32,
    /// The length of the body in bytes.
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

    /// Decodes a header from its bytes.
    ///
    /// # Errors
    /// [`FrameError::UnknownKind`], [`FrameError::NotZero`], [`FrameError::Oversized`], [`FrameError::Undersized`].
    pub fn decode(bytes: [u8; HEADER_BYTES]) -> Result<Self, FrameError> {
        let mut rest = &bytes[..];
        let (number, zeros) = (rest.get_u8(), rest.get_uint(3));
        let (epoch, tag, length) = (rest.get_u32(), rest.get_u32(), rest.get_u32());
        let found = Kind::ALL.into_iter().find(|known| *known as u8 == number);
        let kind = found.ok_or(FrameError::UnknownKind { found: number })?;
        if zeros != 0 {
            return Err(FrameError::NotZero { kind });
        }
        let (min, max) = kind.bounds();
        if length as usize > max {
            return Err(FrameError::Oversized { kind, length, max });
        }
        if (length as usize) < min {
            return Err(FrameError::Undersized { kind, length, min });
        }
        Ok(Self {
            kind,
            epoch,
            tag,
            length,
        })
    }
}
