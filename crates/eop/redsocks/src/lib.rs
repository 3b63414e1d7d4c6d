//! Redirectable sockets for programs that know nothing of them.
//!
//! ```text
//!  curl ==bytes==> agent ==EOP=================> front ==bytes==> nginx
//!                    |                             |
//!                    |<== REDIRECT to front' ======|
//!                    |==EOP=====================> front' ==bytes==> nginx'
//! ```
//!
//! The [`agent`] is beside the client. It has the far end of each TCP connection of the programs in a control group,
//! finds out whether the server speaks EOP, and follows its redirects. The [`front`] is before servers. It speaks EOP
//! with clients that do, and plain TCP with other clients and with the server itself; and it redirects clients. The
//! two have nothing in common but EOP.
//!
//! **What a message is.** Programs write bytes. The bytes that one read(2) of a relay returns are one message, in both
//! directions. The boundaries of messages mean nothing: their bytes together are the program's stream. So a redirect
//! counts in bytes what must be sent again ([`eop_protocol::Kept`]).

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

pub mod agent;
pub mod front;

mod pipe;
mod ulp;
