//! Bytes from anybody: what a raw socket hands to the daemon. Without the key none is a message.

#![no_main]

use std::time::Duration;

use baton_wire::{Clock, Keys, LccpKey, decode, siphash24};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // The fuzzer sees what is compared, and so the tag it should have sent. Under keys that follow from
    // the bytes, a message with that tag has other keys.
    let key = |which| LccpKey::from_words([which, which + 1].map(|k| siphash24([k, 0], bytes)));
    let keys = Keys {
        current: key(0),
        previous: Some(key(2)),
    };
    let found = decode(bytes, &keys, Clock::from_nanos(0), Duration::MAX);
    assert!(found.is_err(), "a tag was guessed: {found:?}");
});
