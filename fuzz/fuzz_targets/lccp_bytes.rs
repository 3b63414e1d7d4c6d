//! The target `lccp_bytes`, for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| baton_fuzz::lccp_bytes::run(bytes));
