//! Channels: what is lost is asked for, once and soon, and nothing else.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod line;
mod properties;
mod scenarios;
