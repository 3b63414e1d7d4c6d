//! The target `http_requests`, for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| baton_fuzz::http_requests::run(bytes));
