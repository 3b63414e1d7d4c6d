//! Candidates to be the connection server in front, in virtual time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod properties;
mod scenarios;
mod world;
