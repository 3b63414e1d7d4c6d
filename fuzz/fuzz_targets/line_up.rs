//! The target `line_up`, for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| baton_fuzz::line_up::run(bytes));
