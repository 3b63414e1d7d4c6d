//! EOP, the end-point operation protocol of redirectable sockets: messages over one TCP connection. Each message may
//! tell the receiver where the other end of the connection is from then on.
//!
//! The header is that of Haungs et al., *A Fast Connection-Time Redirection Mechanism for Internet Application
//! Scalability* (2002), figure 4. Numbers are big-endian. The opcodes are our choice, because the paper gives none.
//! The header stands before each message, and `slen` says where in the byte stream the next one begins.
//!
//! ```text
//!  opcode 2 | port 2 | IPv4 address 4 | slen 4 | message, slen bytes              NORMAL, REDIRECT
//!  opcode 2 | port 2 | IPv4 address 4 | slen 4 | items 2 | item ... | message     opcodes of extension 1
//!                                                 item = kind 1 | length 1 | value
//! ```
//!
//! The upper half of an opcode is the version of the extension; version 0 is exactly the paper's format. Extension 1
//! says what that format cannot: an IPv6 target, a [`Token`], an answer of no bytes, how many bytes of a stream are
//! answered, and how a connection begins ([`Hello`], [`Head::Welcome`]). `items` counts the bytes of all items. A
//! receiver may ignore an unknown item of kind 128 or above; any other unknown item is an error.
//!
//! This module does no I/O. `vectors/eop.txt` holds the bytes that every implementation must produce.

mod decoder;
mod error;
mod head;
mod items;
mod parse;
mod token;

pub use decoder::{Decoder, Piece};
pub use error::Error;
pub use head::{Head, Hello, Redirect};
pub use parse::{Parsed, parse};
pub use token::{EopKey, Refused, Token};

/// The length of the paper's header in bytes.
pub const HEADER: usize = 12;

/// The most bytes that all items of one header may have.
pub const MAX_ITEMS: usize = 256;

/// The length of the longest head in bytes: header, length of the items, items.
pub const MAX_HEAD: usize = HEADER + 2 + MAX_ITEMS;

/// The first bytes of a connection whose client is not sure that the server speaks EOP: the header of HELLO. They
/// begin with a control character and contain a byte that is not text, so no protocol of text lines begins like this,
/// nor do TLS, SSH or HTTP/2.
pub const MAGIC: [u8; HEADER] = [0x01, 0x03, 0x0d, 0x0a, 0xef, b'E', b'O', b'P', 0, 0, 0, 0];

mod opcode {
    pub const NORMAL: u16 = 1;
    pub const REDIRECT: u16 = 2;
    pub const REDIRECT_1: u16 = 0x0102;
    pub const HELLO_1: u16 = 0x0103;
    pub const WELCOME_1: u16 = 0x0104;
}
