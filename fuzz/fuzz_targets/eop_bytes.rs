//! The target `eop_bytes`, for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| baton_fuzz::eop_bytes::run(bytes));
