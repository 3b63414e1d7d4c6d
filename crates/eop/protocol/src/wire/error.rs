//! The errors in bytes that are not EOP.

/// Why bytes are not a message. The stream cannot be read further after any of these errors: it is unknown where the
/// next message begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The opcode is one that this version does not know.
    #[error(
        "the peer sent opcode {opcode:#06x}, which EOP up to extension 1 does not have; \
         it is of another version, or does not speak EOP"
    )]
    Opcode {
        /// The first two bytes of the header.
        opcode: u16,
    },
    /// The message is longer than this end accepts.
    #[error(
        "the peer announced a message of {slen} bytes, above the limit of {limit}; raise the limit if that is right"
    )]
    TooLong {
        /// How many bytes were announced.
        slen: u32,
        /// The most bytes that are accepted.
        limit: u32,
    },
    /// The redirect's target is not usable: its port is 0, or its address is none.
    #[error("the peer redirects to no usable address and port")]
    Target,
    /// The items are cut off, longer than allowed, of a wrong length, given twice, or of an unknown kind that must not
    /// be ignored.
    #[error("item {kind} of the peer's extended header is malformed or not known here")]
    Item {
        /// The item's kind, or 0 if the list of items itself is wrong.
        kind: u8,
    },
    /// The fixed fields of a HELLO or WELCOME are not those that they must be.
    #[error("the peer's HELLO or WELCOME does not have the fields that it must have")]
    Magic,
    /// The stream ended within a message.
    #[error("the peer's stream ended within a message")]
    CutOff,
}
