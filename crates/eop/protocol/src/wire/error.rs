//! What a peer can have sent that is not EOP.

/// Why bytes are not a message. After any of these the stream cannot be read further: where the next
/// message begins is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An opcode that this version does not know.
    #[error(
        "the peer sent opcode {opcode:#06x}, which EOP up to extension 1 has not; \
         it is of another version, or does not speak EOP"
    )]
    Opcode {
        /// The first two bytes of the header.
        opcode: u16,
    },
    /// A message longer than this end takes.
    #[error(
        "the peer announced a message of {slen} bytes, above the limit of {limit}; raise the limit if that is right"
    )]
    TooLong {
        /// Bytes announced.
        slen: u32,
        /// Bytes taken.
        limit: u32,
    },
    /// A redirect to nowhere: no port, or an address that is none.
    #[error("the peer redirects to no usable address and port")]
    Target,
    /// Items that are cut off, longer than allowed, of a wrong length, given twice, or unknown and
    /// needed.
    #[error("item {kind} of the peer's extended header is malformed or not known here")]
    Item {
        /// Its kind; 0 if the list of items itself is wrong.
        kind: u8,
    },
    /// A HELLO or WELCOME whose fixed fields are others.
    #[error("the peer's HELLO or WELCOME has not the fields that it must have")]
    Magic,
    /// The stream ended within a message.
    #[error("the peer's stream ended within a message")]
    CutOff,
}
