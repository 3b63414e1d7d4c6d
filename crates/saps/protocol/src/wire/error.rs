//! What can be wrong with a frame.

use super::{Kind, VERSION};

/// Why bytes are no frame. After one of these nothing more can be read from the channel: where the next frame
/// begins is not known, or the other end is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The bytes end in the middle of a frame.
    #[error("the channel ended in the middle of a frame: {missing} more bytes were to come")]
    Truncated {
        /// Bytes that were to come, as far as is known.
        missing: usize,
    },
    /// A kind that this version does not have.
    #[error("a frame of unknown kind {found}; do both nodes run the same version of baton?")]
    UnknownKind {
        /// The kind's number.
        found: u8,
    },
    /// More than a frame of this kind may carry.
    #[error("{kind:?} with {length} bytes, more than {max}")]
    Oversized {
        /// Of which kind.
        kind: Kind,
        /// What its header says.
        length: u32,
        /// What there may be.
        max: usize,
    },
    /// Less than a frame of this kind carries.
    #[error("{kind:?} with {length} bytes, fewer than {min}")]
    Undersized {
        /// Of which kind.
        kind: Kind,
        /// What its header says.
        length: u32,
        /// What there must be.
        min: usize,
    },
    /// A part that must be zero in this version is not.
    #[error("{kind:?} has something where version {VERSION} has zeros")]
    NotZero {
        /// Of which kind.
        kind: Kind,
    },
    /// A field without meaning.
    #[error("{kind:?} has {value} as its {field}, which means nothing")]
    Value {
        /// Of which kind.
        kind: Kind,
        /// Which field.
        field: &'static str,
        /// What it holds.
        value: u32,
    },
    /// A Hello of another version.
    #[error(
        "the other end speaks version {found} of the forwarding protocol, and this one {VERSION}; \
         run the same baton on both nodes"
    )]
    Version {
        /// The version that it speaks.
        found: u16,
    },
}
