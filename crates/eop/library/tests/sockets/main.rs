//! Real sockets: clients and servers in threads, on one machine. What is shown of the sockets that wait is shown of
//! those on a runtime too, by the same tests (`both`).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::duplicate_mod, reason = "each kind of sockets has all tests")]

mod on_tokio;
mod plain;
mod runtime;
mod waiting;
