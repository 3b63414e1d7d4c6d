//! Policies that go by load, in virtual time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod caches;
mod chance;
mod lard;
mod least_loaded;
mod locality;
mod overflow;
mod queues;
