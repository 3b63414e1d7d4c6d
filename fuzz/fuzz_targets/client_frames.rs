//! The target `client_frames`, for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| baton_fuzz::client_frames::run(bytes));
