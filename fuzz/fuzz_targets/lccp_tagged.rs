//! Any header, body and packet under a right tag: what is behind the tag check.
//!
//! The input is a message without its tag. What the decoder accepts must be sayable: encoded again
//! it is understood the same.

#![no_main]

use std::time::Duration;

use baton_wire::{Keys, LccpKey, decode, encode, tag};
use libfuzzer_sys::fuzz_target;

const TAGGED_BYTES: usize = 72;
const BODY_LENGTH_AT: usize = 4;

fuzz_target!(|input: &[u8]| {
    let Some((header, rest)) = input.split_first_chunk::<TAGGED_BYTES>() else {
        return;
    };
    let length = u16::from_be_bytes([header[BODY_LENGTH_AT], header[BODY_LENGTH_AT + 1]]);
    let body = &rest[..rest.len().min(length.into())];

    let key = LccpKey::from_words([0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210]);
    let keys = Keys::only(key);
    let bytes = [header, &tag(&key, header, body).to_be_bytes()[..], rest].concat();
    let now = baton_wire::Clock::from_nanos(0);
    let Ok(received) = decode(&bytes, &keys, now, Duration::MAX) else {
        return;
    };

    let mut again = encode(&received.message, received.clock, &key);
    again.extend_from_slice(received.packet);
    assert_eq!(
        decode(&again, &keys, received.clock, Duration::ZERO).as_ref(),
        Ok(&received)
    );
});
