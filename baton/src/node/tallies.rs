//! Tallies of the programs, as status shows them.

use std::collections::BTreeMap;

use anyhow::Result;
use baton_abi::{LCCP_KEEP_NAMES, TALLY_KEEPS};
use baton_dataplane::{Dataplane, Tallied};

use crate::status::{Handovers, Tally};

/// What was counted there; nothing for what is not counted here.
pub fn of(dataplane: &Dataplane, tallied: Option<Tallied>) -> Result<Option<Tally>> {
    let tally = tallied.map(|of| dataplane.tally(of)).transpose()?;
    Ok(tally.map(|tally| shown(&tally)))
}

/// In the words of status.
pub fn shown(tally: &baton_abi::Tally) -> Tally {
    let all_kept: u64 = tally.kept.iter().sum();
    let mut kept = BTreeMap::new();
    for (reason, count) in (0..TALLY_KEEPS).zip(tally.kept) {
        if count > 0 {
            *kept.entry(reason_name(reason)).or_default() += count;
        }
    }
    Tally {
        requests: tally.requests.saturating_sub(tally.taken_back),
        taken_back: tally.taken_back,
        bytes: tally.bytes,
        unavailable: tally.unavailable,
        closed: tally.closed,
        handovers: Handovers {
            tried: tally.handovers,
            made: tally.handovers.saturating_sub(all_kept + tally.none),
            none: tally.none,
            kept,
        },
    }
}

/// Of `enum lccp_keep`: `unread`.
fn reason_name(reason: u32) -> String {
    let named = LCCP_KEEP_NAMES.iter().find(|(_, value)| *value == reason);
    named.map_or_else(
        || "other".into(),
        |(name, _)| name.trim_start_matches("LCCP_KEEP_").to_lowercase(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_abi::{LCCP_KEEP_NO_WAY, LCCP_KEEP_UNREAD};

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
        let shown = shown(&tally);
        assert_eq!((shown.requests, shown.handovers.made), (7, 4));
        let kept = [("no_way", 1), ("other", 2), ("unread", 2)];
        let kept = kept.map(|(name, count)| (name.to_owned(), count));
        assert_eq!(shown.handovers.kept, kept.into());
    }

    /// A late KEEP counts, and so does the NONE that undoes it.
    #[test]
    fn more_undone_than_tried() {
        let mut tally = baton_abi::Tally::default();
        (tally.handovers, tally.none, tally.kept[1]) = (1, 1, 1);
        assert_eq!(shown(&tally).handovers.made, 0);
    }
}
