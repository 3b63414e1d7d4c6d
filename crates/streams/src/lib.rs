//! Streams between the daemons of a cluster, for what is too long for a message of LCCP, or must arrive.
//!
//! ```text
//!  the daemon here                                                  the daemon at another node
//!  tell(node, topic, text) --> teller ==QUIC, one stream of frames==> listener --> Heard { from, topic, text }
//! ```
//!
//! A topic is a state, of which only the newest text counts: one that is replaced before the other node can be reached is
//! never told, and a node that begins anew is told all topics again. Nobody need acknowledge anything, or ask.
//!
//! Both ends prove by TLS 1.3 that they have the key that these two nodes share, and no third one: so a node can speak for
//! itself alone ([`Pinned`]). Which node is at the other end, its address says, which QUIC has validated.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may panic"))]

mod frame;
mod listener;
mod pinned;
pub mod quic;
mod shared;
mod streams;
mod teller;

pub use frame::{LONGEST, Topic};
pub use listener::Heard;
pub use pinned::Pinned;
pub use streams::{Error, Streams};
