//! Channels: every lost message is asked for once and soon, and no other message is asked for.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod line;
mod properties;
mod scenarios;
