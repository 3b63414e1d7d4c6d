//! The errors of a frame.

use super::{Kind, VERSION};

/// Why bytes are no frame. Nothing more can be read from the channel after such an error: it is unknown where the next
/// frame begins, or the other end is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The bytes end in the middle of a frame.
    #[error("the channel ended in the middle of a frame: {missing} more bytes were to come")]
    Truncated {
        /// How many bytes are missing, as far as is known.
        missing: usize,
    },
    /// The frame's kind is one that this version does not have.
    #[error("a frame of unknown kind {found}; do both nodes run the same version of baton?")]
    UnknownKind {
        /// The kind's number.
        found: u8,
    },
    /// The frame is longer than its kind may be.
    #[error("{kind:?} with {length} bytes, more than {max}")]
    Oversized {
        /// The frame's kind.
        kind: Kind,
        /// The length that the header says.
        length: u32,
        /// The most bytes that a body of this kind may have.
        max: usize,
    },
    /// The frame is shorter than its kind must be.
    #[error("{kind:?} with {length} bytes, fewer than {min}")]
    Undersized {
        /// The frame's kind.
        kind: Kind,
        /// The length that the header says.
        length: u32,
        /// The fewest bytes that a body of this kind may have.
        min: usize,
    },
    /// A part of the frame that must be zero in this version is not.
    #[error("{kind:?} has other bytes than zeros where version {VERSION} has zeros")]
    NotZero {
        /// The frame's kind.
        kind: Kind,
    },
    /// A field has a value without a meaning.
    #[error("{kind:?} has {value} as its {field}, which is not a valid value")]
    Value {
        /// The frame's kind.
        kind: Kind,
        /// The name of the field.
        field: &'static str,
        /// The value that it holds.
        value: u32,
    },
    /// The Hello is of another version.
    #[error(
        "the other end speaks version {found} of the forwarding protocol, and this one {VERSION}; \
         run the same baton on both nodes"
    )]
    Version {
        /// The version that the other end speaks.
        found: u16,
    },
}
