//! Unmodified programs whose TCP is on another node: real programs in several languages, with the real agent and
//! hooks, and an I/O server behind the forwarding network.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod bed;
mod calls;
#[path = "../../../../net/tests/common/mod.rs"]
mod common;
mod ends;
mod options;
mod ports;
mod programs;
mod streams;
