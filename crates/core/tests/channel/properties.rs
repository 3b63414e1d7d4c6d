//! What holds whatever is sent and lost.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;

use crate::line::Line;

/// The messages of one tick: each takes a delay in milliseconds, or is lost (`None`).
fn tick() -> impl Strategy<Value = Vec<Option<u64>>> {
    let delay = prop_oneof![
        8 => (0u64..5).prop_map(Some),
        1 => Just(Some(9)),
        1 => Just(None),
    ];
    prop_oneof![
        3 => Just(Vec::new()),
        3 => proptest::collection::vec(delay.clone(), 0..4),
        1 => proptest::collection::vec(delay, 0..60),
    ]
}

proptest! {
    #[test]
    fn what_is_lost_is_asked_for_once_and_nothing_else(
        begin in any::<u16>(),
        ticks in proptest::collection::vec(tick(), 1..80),
    ) {
        let mut line = Line::beginning_at(begin);
        line.tick();
        // After these two messages both ends know the channel.
        line.send(Some(Duration::ZERO));
        line.send(Some(Duration::ZERO));
        line.ticks(10);
        for sent in ticks {
            for delay in sent {
                line.send(delay.map(Duration::from_millis));
            }
            line.tick();
        }
        line.ticks(10);
        let asked = line.asked_numbers();
        let once: BTreeSet<u16> = asked.iter().copied().collect();
        prop_assert_eq!(once.len(), asked.len(), "asked twice");
        prop_assert_eq!(once, line.lost);
    }
}
