//! Streams between the daemons of a cluster, for data that is too long for an LCCP message or must arrive.
//!
//! ```text
//!  the daemon here                                                  the daemon at another node
//!  tell(node, topic, text) --> teller ==QUIC, one stream of frames==> listener --> StreamMessage { from, topic, text }
//!  ask(node, question)     --> teller ==QUIC, a stream of its own==> listener --> Question { from, text, answers }
//!                                     <==the answers==
//!  open(node, text) ==QUIC, a stream of its own==> listener --> Opened { from, text, channel }
//! ```
//!
//! A channel has bytes in both directions, for as long as both ends want.
//!
//! A question is for once: it reaches the other node and is answered, perhaps more than once, or fails.
//!
//! A topic is a state of which only the newest text counts. A text that is replaced before the other node can be
//! reached is never sent, and a node that restarts is sent all topics again. So no acknowledgements and no requests are
//! needed.
//!
//! Both ends prove by TLS 1.3 that they have the key that only these two nodes share, so a node can speak only for
//! itself ([`Pinned`]). The address tells which node is at the other end; QUIC has validated it.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may panic"))]

mod channel;
mod frame;
mod listener;
mod pinned;
mod question;
pub mod quic;
mod shared;
mod streams;
mod teller;

pub use channel::{Channel, Opened};
pub use frame::{LONGEST, Text, Topic};
pub use listener::StreamMessage;
pub use pinned::Pinned;
pub use question::{Answers, Ask, Question};
pub use streams::{Error, Incoming, Streams};
