//! Redirectable sockets: both ends of sessions in a world of three servers and virtual time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod properties;
mod rules;
mod world;
