//! Real sockets on one machine, with servers in threads. The tests in the folder both/ run twice: with the blocking
//! sockets (blocking.rs) and with those on a runtime (on_tokio.rs).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::duplicate_mod, reason = "each kind of sockets has all tests")]

mod blocking;
mod on_tokio;
mod plain;
mod runtime;
