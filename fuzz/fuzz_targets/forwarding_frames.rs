//! The target `forwarding_frames`, for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| baton_fuzz::forwarding_frames::run(bytes));
