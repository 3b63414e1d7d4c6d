//! The wire format of the forwarding protocol, which an I/O server and an application node speak.
//!
//! One channel carries many connections; a tag says which one a frame is about. The channel is reliable and keeps the
//! order of what is sent about one connection. The node at its other end was authenticated when the channel was made.
//! Names are those of the paper (Matsuba and Ishikawa 2007, section 2.1.1), where it has one.
//!
//! ```text
//!  0 kind u8 | 1 zero | 4 epoch u32 | 8 tag u32 | 12 length u32 | 16 body          big-endian
//! ```
//!
//! The epoch is the number that the *receiver* gave in its Hello on this channel, and 0 in a Hello itself. Frames that
//! were meant for an earlier channel are recognized by it. Tags of connections are odd if the I/O server made them and
//! even if the application node did.
//!
//! `vectors/forwarding.txt` holds the bytes that every implementation must produce.

mod decode;
mod encode;
mod error;
mod frame;
mod header;
mod kind;
mod options;

pub use decode::Decoder;
pub use error::FrameError;
pub use frame::{Errno, Families, Frame, Hello, ListenerTag, Side, Tag, TakenPort, Way};
pub use header::{HEADER_BYTES, Header};
pub use kind::Kind;
pub use options::SocketOptions;

/// The version of the protocol that this code speaks; both ends must speak the same.
pub const VERSION: u16 = 2;

/// The most bytes that one SendMessage carries.
pub const MAX_MESSAGE: usize = 64 * 1024;

/// The most ports that one Taken names.
pub const MAX_TAKEN: usize = 1024;

/// The length of the longest name in a Hello, in bytes.
pub const MAX_NAME: usize = 63;
