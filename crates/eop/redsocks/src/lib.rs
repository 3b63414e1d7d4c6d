//! Redirectable sockets for programs that know nothing of them.
//!
//! ```text
//!  curl ==bytes==> agent ==EOP=================> front ==bytes==> nginx
//!                    |                             |
//!                    |<== REDIRECT to front' ======|
//!                    |==EOP=====================> front' ==bytes==> nginx'
//! ```
//!
//! The [`agent`] is beside the client: it has the far end of each TCP connection of the programs in a control
//! group, finds out whether the server speaks EOP, and follows its redirects. The [`front`] is before servers:
//! it speaks EOP with clients that do, plain TCP with others, and with the server itself; and it sends clients
//! elsewhere. Neither has anything to do with the other but EOP.
//!
//! **What a message is.** Programs write bytes. Whatever one read(2) of a relay has given is one message, in
//! both directions: boundaries mean nothing, the messages' bytes together are the program's stream. What a
//! redirect leaves open is said in bytes ([`eop_protocol::Kept`]).

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

pub mod agent;
pub mod front;

mod pipe;
mod ulp;
