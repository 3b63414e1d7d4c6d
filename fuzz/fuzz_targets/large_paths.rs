//! The target `large_paths`, for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| baton_fuzz::large_paths::run(bytes));
