//! Fuzzes what is behind the tag check, with any header, body and packet under a right tag.
//!
//! The input is a message without its tag. A message that the decoder accepts must be the same after it is encoded and
//! decoded again.

use std::{net::Ipv4Addr, time::Duration};

use baton_wire::{Keys, LccpKey, NodePair, decode, encode, tag};

const TAGGED_BYTES: usize = 72;
const PAIR: NodePair = NodePair {
    from: Ipv4Addr::new(192, 0, 2, 1),
    to: Ipv4Addr::new(192, 0, 2, 11),
};

/// Runs one input.
pub fn run(input: &[u8]) {
    let Some((header, rest)) = input.split_first_chunk::<TAGGED_BYTES>() else {
        return;
    };
    let key = LccpKey::from_words([0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210]);
    let keys = Keys::only(key);
    let bytes = [
        header,
        &tag(&key, header, PAIR, rest).to_be_bytes()[..],
        rest,
    ]
    .concat();
    let now = baton_wire::Clock::from_nanos(0);
    let Ok(received) = decode(&bytes, PAIR, &keys, now, Duration::MAX) else {
        return;
    };

    let again = encode(
        &received.message,
        received.packet,
        received.clock,
        &key,
        PAIR,
    );
    assert_eq!(
        decode(&again, PAIR, &keys, received.clock, Duration::ZERO).as_ref(),
        Ok(&received)
    );
}
