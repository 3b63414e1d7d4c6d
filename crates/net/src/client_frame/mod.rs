//! Frames of clients: an Ethernet header, then one whole packet of TCP over IPv4. Made from a client's stream, and read again.

mod build;
mod read;

pub use build::{PIECE, Stream};
pub use read::{ETHERNET, NotTcp, Segment};
