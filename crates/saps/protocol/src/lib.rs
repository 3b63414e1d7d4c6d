//! The forwarding protocol as a state machine: many connections on one channel, none in another's way.
//!
//! ```text
//!  program --send, shutdown, close--> Channel --poll_transmit--> lane ~~~ handle_frame --> Channel --receive--> program
//!                                        ^                                                    |
//!                                        '------- BufferAvailable(L_r), in the other direction '
//! ```
//!
//! The flow control is the paper's (Matsuba and Ishikawa 2007, appendix A), with its names, in [`credit`]: a
//! receiver never has more of a connection than its buffer B_r holds, so a program that does not read stops its
//! own connection and nobody else's. Connections that may send take turns, a [`QUANTUM`] each.
//!
//! A channel has one lane or several; each keeps the order of its frames, and all frames about one connection are
//! on one lane.
//!
//! Tags live as long as the other end may still speak of them: who closes says CloseConnection, or Reset, and
//! hears ConnectionClosed as the last word about the tag. Until then whatever else comes is late, not wrong.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

pub mod backoff;
mod channel;
mod choice;
mod connection;
mod counters;
pub mod credit;
mod event;
mod fault;
mod inbox;
mod lanes;
pub mod ports;
mod receive;
pub mod wire;

pub use channel::{Channel, HELLO_PATIENCE};
pub use choice::PortPolicy;
pub use connection::{ConnectionId, QUANTUM, Received, SEND_BUFFER};
pub use counters::{Counters, Gauges};
pub use event::Event;
pub use fault::Fault;
