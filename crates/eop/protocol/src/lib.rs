//! Redirectable sockets: the two ends of a session, over connections that come and go.
//!
//! A server may at any time say that its end of the connection is elsewhere from now on. *Early*, without an
//! answer: the client must ask again there. *Late*, with the answer, which is delivered first. The client
//! follows if it may ([`Allow`]), comes back if nobody answers there, and gives up when it is sent in
//! circles ([`Client`]). The server ([`Server`]) makes and checks tokens.
//!
//! One rule of the conversation: each message of the server answers the oldest request that has none. That
//! is what tells which requests are to be sent again. Servers may say things unasked, but not while a
//! request waits.
//!
//! ```text
//!  client            B                  C        client            B                  C
//!    |---request---->|                  |          |---request---->|                  |
//!    |<--REDIRECT C--|                  |          |<--REDIRECT C, answer             |
//!    |---request----------------------->|          |---request 2--------------------->|
//! ```
//!
//! **Nothing twice, nothing lost.** A request goes to another server only if the one before said that it
//! has not answered it, or cannot have it whole, unless requests are idempotent by the
//! application's word. If a connection dies with requests on it, the application hears how many.
//!
//! Messages themselves do not pass through here, only their heads: the one that carries them may leave them
//! where they are.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod allow;
mod client;
mod error;
mod kept;
mod server;
mod targets;
pub mod turns;
pub mod wire;

pub use allow::{Allow, NotAllowed, Prefix};
pub use client::{Client, ClientOptions, Opening, Resend, Verdict};
pub use error::Error;
pub use kept::{Kept, Unclear};
pub use server::{Heard, Server, ServerOptions, TOKEN_LIFETIME};
pub use targets::{DOWN, MOST, Target, Targets};
