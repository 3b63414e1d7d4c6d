//! Bytes from anybody: what a raw socket hands to the daemon. Without the key none is a message.

#![no_main]

use std::time::Duration;

use baton_wire::{Clock, Keys, LccpKey, decode};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let keys = Keys {
        current: LccpKey::from_words([0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210]),
        previous: Some(LccpKey::from_words([1, 2])),
    };
    let found = decode(bytes, &keys, Clock::from_nanos(0), Duration::MAX);
    assert!(found.is_err(), "a tag was guessed: {found:?}");
});
