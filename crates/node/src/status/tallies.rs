//! Tallies of the programs, as status shows them.

use anyhow::Result;
use baton_dataplane::{Dataplane, Tallied};
use baton_wire::Counts;

use crate::status::Tally;

/// The sum of what the programs counted for `tallied` and of what doors counted. `None` if this node does not count
/// it.
pub fn of(
    dataplane: &Dataplane,
    tallied: Option<Tallied>,
    at_doors: Counts,
) -> Result<Option<Tally>> {
    let counted = tallied.zip(dataplane.routing());
    let tally = (counted.map(|(of, routing)| routing.tally(of))).transpose()?;
    Ok(tally.map(|tally| shown(&tally, at_doors)))
}

/// Adds what doors counted to a tally of the programs, and returns the sum as status shows it.
pub fn shown(tally: &baton_abi::Tally, at_doors: Counts) -> Tally {
    let requests = tally.requests.saturating_sub(tally.taken_back);
    Tally {
        requests: requests + at_doors.requests,
        taken_back: tally.taken_back,
        bytes: tally.bytes + at_doors.bytes,
        unavailable: tally.unavailable + at_doors.unavailable,
        handovers: at_doors.handovers,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_doors_count_is_added() {
        let tally = baton_abi::Tally {
            requests: 4,
            taken_back: 3,
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
        let expected = Tally {
            requests: 11,
            taken_back: 3,
            bytes: 500,
            unavailable: 3,
            handovers: 3,
        };
        assert_eq!(shown(&tally, at_doors), expected);
    }
}
