//! Redirectable sockets: the two ends of a session that goes from one connection to the next.
//!
//! A server may say at any time that its end of the connection is at another server. *Early*, it says so without an
//! answer, and the client must send its request again there. *Late*, it says so with the answer, which is delivered
//! first. The client follows if the redirect is allowed ([`Allow`]), comes back if nobody answers at the target, and
//! gives up if it is sent in circles ([`Client`]). The server ([`Server`]) makes and checks tokens.
//!
//! Each message of the server answers the oldest request that has no answer. This rule tells which requests must be
//! sent again. Servers may send messages that nobody asked for, but not while a request waits.
//!
//! ```text
//!  client            B                  C        client            B                  C
//!    |---request---->|                  |          |---request---->|                  |
//!    |<--REDIRECT C--|                  |          |<--REDIRECT C, answer             |
//!    |---request----------------------->|          |---request 2--------------------->|
//! ```
//!
//! **Nothing twice, nothing lost.** A request goes to another server only if the one before has said that it did not
//! answer the request, or cannot have all of it. The exception is an application that says that its requests are
//! idempotent. If a connection dies with requests on it, the application learns how many.
//!
//! Only the heads of messages pass through this crate. The code that carries the messages themselves may leave them
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
