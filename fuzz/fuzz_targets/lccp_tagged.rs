//! The target `lccp_tagged`, for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| baton_fuzz::lccp_tagged::run(bytes));
