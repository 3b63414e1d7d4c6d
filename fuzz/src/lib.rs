//! The fuzz targets, each in a module. The module's `run` takes an input and panics if something that must hold does
//! not.
//!
//! `fuzz/run` gives these functions to libFuzzer. `tests/corpus.rs` runs them as ordinary tests, on the inputs in
//! `fuzz/corpus` and on some changed ones.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a target fails by panicking")]

pub mod config;
pub mod eop_bytes;
pub mod forwarding_frames;
pub mod http_requests;
pub mod large_paths;
pub mod lccp_bytes;
pub mod lccp_tagged;
pub mod paths;
pub mod responses;
pub mod tallies;
pub mod turns;

/// The function of a target, which runs one input.
pub type Target = fn(&[u8]);

/// All targets, by name.
pub const TARGETS: [(&str, Target); 11] = [
    ("config", config::run),
    ("eop_bytes", eop_bytes::run),
    ("forwarding_frames", forwarding_frames::run),
    ("http_requests", http_requests::run),
    ("large_paths", large_paths::run),
    ("lccp_bytes", lccp_bytes::run),
    ("lccp_tagged", lccp_tagged::run),
    ("paths", paths::run),
    ("responses", responses::run),
    ("tallies", tallies::run),
    ("turns", turns::run),
];
