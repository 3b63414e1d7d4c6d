//! Migration in virtual time: both ends, a line that loses, repeats and delays messages, and tables that change.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod book;
mod entries;
mod line;
mod merging;
mod properties;
mod scenarios;
