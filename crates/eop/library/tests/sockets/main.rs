//! Real sockets: clients and servers in threads, on one machine. The same tests (`both`) run with the blocking sockets
//! and with those on a runtime.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::duplicate_mod, reason = "each kind of sockets has all tests")]

mod on_tokio;
mod plain;
mod runtime;
mod waiting;
