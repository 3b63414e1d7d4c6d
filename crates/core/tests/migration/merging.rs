//! An entry that arrives where the table has one already.

use baton_core::migration::merge;
use baton_wire::TcbEntry;
use proptest::prelude::*;

use crate::entries::{advance, entry, short};

fn later(by: u32) -> TcbEntry {
    let mut entry = entry(3);
    for _ in 0..by {
        advance(&mut entry);
    }
    entry
}

#[test]
fn newer_replaces_older_and_never_the_other_way() {
    for (here, came) in [(0, 0), (0, 1), (1, 5), (4, 4)] {
        let came = later(came);
        assert_eq!(merge(Some(&later(here)), &came), Some(came));
    }
    for (here, came) in [(1, 0), (5, 1)] {
        assert_eq!(merge(Some(&later(here)), &later(came)), None);
    }
    assert_eq!(merge(None, &later(1)), Some(later(1)));
}

#[test]
fn acknowledgements_count_where_data_does_not_differ() {
    let here = later(1);
    let mut came = here;
    came.last_ack = came.last_ack.wrapping_sub(1);
    assert_eq!(merge(Some(&here), &came), None);
    assert_eq!(merge(Some(&came), &here), Some(here));
    // The owner of a connection can change without a packet of the client.
    let mut came = here;
    came.owner = short(9);
    assert_eq!(merge(Some(&here), &came), Some(came));
}

#[test]
fn of_two_connections_the_later_counts() {
    let (mut here, mut came) = (later(0), later(0));
    came.last_seq = came.last_seq.wrapping_add(1 << 20);
    (here.age, came.age) = (9, 2);
    assert_eq!(merge(Some(&here), &came), Some(came));
    (here.age, came.age) = (2, 9);
    assert_eq!(merge(Some(&here), &came), None);
    (here.age, came.age) = (2, 2);
    assert_eq!(merge(Some(&here), &came), None, "clients come here");
}

proptest! {
    /// In any order, and however often each entry arrives, the newest one stays in the end.
    #[test]
    fn the_newest_stays(order in prop::collection::vec(0u32..8, 1..20)) {
        let mut here = None;
        for by in &order {
            here = merge(here.as_ref(), &later(*by)).or(here);
        }
        prop_assert_eq!(here, order.iter().max().map(|by| later(*by)));
    }
}
