//! Tallies of the programs, as status shows them.

use std::collections::BTreeMap;

use anyhow::Result;
use baton_abi::{CLOSED_REASON_NAMES, LCCP_KEEP_NAMES};
use baton_dataplane::{Dataplane, Tallied};
use baton_wire::Counts;

use crate::status::{Handovers, Tally};

/// What was counted there, and at doors; nothing for what is not counted here.
pub fn of(
    dataplane: &Dataplane,
    tallied: Option<Tallied>,
    at_doors: Counts,
) -> Result<Option<Tally>> {
    let tally = tallied.map(|of| dataplane.tally(of)).transpose()?;
    Ok(tally.map(|tally| shown(&with(tally, at_doors))))
}

/// Adds what doors have counted. With whom the connection goes each of their handovers is made.
pub fn with(mut tally: baton_abi::Tally, at_doors: Counts) -> baton_abi::Tally {
    tally.requests += at_doors.requests;
    tally.bytes += at_doors.bytes;
    tally.handovers += at_doors.handovers;
    tally.unavailable += at_doors.unavailable;
    tally
}

/// In the words of status.
pub fn shown(tally: &baton_abi::Tally) -> Tally {
    let all_kept: u64 = tally.kept.iter().sum();
    Tally {
        requests: tally.requests.saturating_sub(tally.taken_back),
        taken_back: tally.taken_back,
        bytes: tally.bytes,
        unavailable: tally.unavailable,
        closed: by_reason(&tally.closed, CLOSED_REASON_NAMES, "CLOSED_"),
        handovers: Handovers {
            tried: tally.handovers,
            made: tally.handovers.saturating_sub(all_kept + tally.none),
            none: tally.none,
            kept: by_reason(&tally.kept, LCCP_KEEP_NAMES, "LCCP_KEEP_"),
        },
    }
}

/// Those that there were, by the names of an enum's members: `unread`.
fn by_reason(counts: &[u64], names: &[(&str, u32)], prefix: &str) -> BTreeMap<String, u64> {
    let mut by_reason = BTreeMap::new();
    for (reason, count) in (0u32..).zip(counts).filter(|(_, count)| **count > 0) {
        let named = names.iter().find(|(_, value)| *value == reason);
        let name = named.map_or_else(
            || "other".into(),
            |(name, _)| name.trim_start_matches(prefix).to_lowercase(),
        );
        *by_reason.entry(name).or_default() += count;
    }
    by_reason
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_abi::{CLOSED_UNMOVED, LCCP_KEEP_NO_WAY, LCCP_KEEP_UNREAD};

    #[test]
    fn what_is_not_made() {
        let mut tally = baton_abi::Tally {
            requests: 10,
            taken_back: 3,
            handovers: 10,
            none: 1,
            ..Default::default()
        };
        tally.kept[LCCP_KEEP_UNREAD as usize] = 2;
        tally.kept[LCCP_KEEP_NO_WAY as usize] = 1;
        for without_a_name in [0, tally.kept.len() - 1] {
            tally.kept[without_a_name] = 1;
        }
        tally.closed[CLOSED_UNMOVED as usize] = 5;
        let shown = shown(&tally);
        assert_eq!(shown.closed, [("unmoved".to_owned(), 5)].into());
        assert_eq!((shown.requests, shown.handovers.made), (7, 4));
        let kept = [("no_way", 1), ("other", 2), ("unread", 2)];
        let kept = kept.map(|(name, count)| (name.to_owned(), count));
        assert_eq!(shown.handovers.kept, kept.into());
    }

    #[test]
    fn what_doors_count_is_added() {
        let tally = baton_abi::Tally {
            requests: 1,
            unavailable: 1,
            connections: 9,
            ..Default::default()
        };
        let at_doors = Counts {
            requests: 10,
            bytes: 500,
            handovers: 3,
            unavailable: 2,
        };
        let shown = shown(&with(tally, at_doors));
        assert_eq!(
            (shown.requests, shown.bytes, shown.unavailable),
            (11, 500, 3)
        );
        assert_eq!((shown.handovers.tried, shown.handovers.made), (3, 3));
    }

    /// A late KEEP counts, and so does the NONE that undoes it.
    #[test]
    fn more_undone_than_tried() {
        let mut tally = baton_abi::Tally::default();
        (tally.handovers, tally.none, tally.kept[1]) = (1, 1, 1);
        assert_eq!(shown(&tally).handovers.made, 0);
    }
}
