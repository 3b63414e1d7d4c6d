//! The forwarding protocol of SAPS, between the node that has clients' TCP connections and a node whose program serves
//! them, as a state machine: many connections on one channel, none of which holds up another.
//!
//! ```text
//!  program --send, shutdown, close--> Channel --poll_transmit--> lane ~~~ handle_frame --> Channel --receive--> program
//!                                        ^                                                    |
//!                                        '------- BufferAvailable(L_r), in the other direction '
//! ```
//!
//! The flow control is that of the paper (Matsuba and Ishikawa 2007, appendix A), with its names, in [`credit`]. A
//! receiver never has more of a connection than its buffer B_r holds, so a program that does not read stops its own
//! connection and no other. Connections that may send take turns, a [`QUANTUM`] each.
//!
//! A channel has one lane or several (one over TCP, several streams over QUIC). Each keeps the order of its frames, and all
//! frames about one connection are on one lane.
//!
//! A tag is the number of a connection on its channel. It lives as long as the other end may still send frames about it. The end that closes a connection sends
//! CloseConnection or Reset, and receives ConnectionClosed as the last frame about the tag. All other frames that
//! arrive before that are late and not an error.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod calls;
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
mod transmit;
pub mod wire;

pub use channel::{Channel, HELLO_PATIENCE};
pub use choice::PortPolicy;
pub use connection::{ConnectionId, QUANTUM, Received, SEND_BUFFER};
pub use counters::{Counters, Gauges};
pub use event::Event;
pub use fault::Fault;
