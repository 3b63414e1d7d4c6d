//! What holds whatever the line does.

use baton_core::migration::Failure;
use proptest::prelude::*;

use crate::line::{Weather, World};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_entry_arrives_exactly_as_it_was(
        entries in 0u32..3000,
        changes in 0u32..200,
        lost in 0u64..300,
        twice in 0u64..300,
        delay in 0u64..30_000,
        seed in any::<u64>(),
    ) {
        let weather = Weather { lost, twice, delay, cut_at: None };
        let mut world = World::new(entries, weather, seed);
        world.changes = changes;
        let report = world.run();
        prop_assert!(report.is_ok(), "{:?}", report);
        world.drain();
        prop_assert_eq!(world.transfers, 1);
        for (key, entry) in &world.there {
            prop_assert_eq!(world.here.get(key), Some(entry));
        }
        let report = report.unwrap();
        prop_assert_eq!(report.passes.iter().sum::<usize>(), report.taken.taken as usize);
        prop_assert_eq!(world.applied.len(), report.batches as usize);
    }

    /// If the line is cut at any moment, the sender ends and says why, and each entry that has arrived is as it was at
    /// some time.
    #[test]
    fn it_ends_when_nobody_is_there_any_more(
        entries in 0u32..2000,
        cut_at in 0u64..800,
        lost in 0u64..100,
        seed in any::<u64>(),
    ) {
        let weather = Weather { lost, twice: 50, delay: 2000, cut_at: Some(cut_at) };
        let mut world = World::new(entries, weather, seed);
        let table = world.there.clone();
        match world.run() {
            Ok(_) => prop_assert_eq!(&world.here, &table),
            Err(Failure::NoAnswer) => prop_assert!(world.transfers == 0),
            Err(Failure::Silent) => prop_assert_eq!(world.transfers, 0),
            Err(Failure::LastPassLost(_)) => {
                prop_assert_eq!(world.transfers, 1);
                prop_assert_eq!(&world.here, &table);
            }
            Err(other) => prop_assert!(false, "{other:?}"),
        }
        for (key, entry) in &world.here {
            prop_assert_eq!(table.get(key), Some(entry));
        }
    }
}
