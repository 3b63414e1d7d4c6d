//! Fuzzes the bytes that a raw socket hands to the daemon. Anybody may send them, and without the key none are a
//! message.

use std::{net::Ipv4Addr, time::Duration};

use baton_wire::{Clock, Keys, LccpKey, NodePair, decode, siphash24};

/// Runs one input.
pub fn run(bytes: &[u8]) {
    // The fuzzer sees what is compared, and so learns the tag that it should have sent. The keys depend on the bytes,
    // so a message with that tag is checked under other keys.
    let key = |which| LccpKey::from_words([which, which + 1].map(|k| siphash24([k, 0], bytes)));
    let keys = Keys {
        current: key(0),
        previous: Some(key(2)),
        leads: true,
    };
    let pair = NodePair {
        from: Ipv4Addr::new(192, 0, 2, 1),
        to: Ipv4Addr::new(192, 0, 2, 11),
    };
    let found = decode(bytes, pair, &keys, Clock::from_nanos(0), Duration::MAX);
    assert!(found.is_err(), "a tag was guessed: {found:?}");
}
