//! A slot means the same data server for as long as anybody may remember it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::time::Duration;

use baton_core::Moment;
use baton_core::slots::{Slot, Slots};
use baton_wire::Address;
use proptest::collection::vec;
use proptest::prelude::*;

const QUARANTINE: Duration = Duration::from_secs(100);

proptest! {
    #[test]
    fn a_slot_changes_hands_only_after_its_quarantine(reloads in vec(reload(), 1..20)) {
        let mut now = Moment::default();
        let mut slots = Slots::new(QUARANTINE);
        // The data server that had each slot last, and until when.
        let mut had: BTreeMap<Slot, (Address, Moment)> = BTreeMap::new();
        for Reload { after, wanted, restart } in reloads {
            for (slot, address) in slots.taken() {
                had.insert(slot, (address, now));
            }
            now = now + after;
            if restart {
                // The map still names data servers that were removed.
                let map: Vec<_> = had.iter().map(|(slot, (address, _))| (*slot, *address)).collect();
                slots = Slots::restored(now, QUARANTINE, map);
            }
            if slots.assign(now, wanted.iter().copied()).is_err() {
                continue;
            }
            let taken: BTreeSet<Address> = slots.taken().map(|(_, address)| address).collect();
            prop_assert_eq!(&taken, &wanted);
            for (slot, address) in slots.taken() {
                if let Some((last, since)) = had.get(&slot) {
                    prop_assert!(address == *last || now.since(*since) >= QUARANTINE);
                }
                prop_assert_eq!(slots.slot(address), Some(slot));
            }
        }
    }
}

#[derive(Clone, Debug)]
struct Reload {
    after: Duration,
    wanted: BTreeSet<Address>,
    restart: bool,
}

/// Generates a reload with up to 256 of 300 data servers, so that the slots run out now and then.
fn reload() -> impl Strategy<Value = Reload> {
    let addresses: Vec<_> = (0u16..300)
        .map(|number| {
            let [high, low] = number.to_be_bytes();
            Address::from(Ipv4Addr::new(192, 0, high, low))
        })
        .collect();
    let few_or_many = prop_oneof![
        prop::sample::subsequence(addresses.clone(), 0..20),
        prop::sample::subsequence(addresses, 200..=256),
    ];
    let wanted = few_or_many.prop_map(BTreeSet::from_iter);
    (0u64..150, wanted, prop::bool::weighted(0.2)).prop_map(|(after, wanted, restart)| Reload {
        after: Duration::from_secs(after),
        wanted,
        restart,
    })
}
