//! What the doors of a data server have counted, as it reports it to connection servers.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use baton_abi::{MAX_POOLS, TALLIED_ROUTES};

/// How often each of these happened since counting began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests, including those in `unavailable`.
    pub requests: u64,
    /// Bytes of responses that clients have acknowledged.
    pub bytes: u64,
    /// Connections that went to another data server with a request.
    pub handovers: u64,
    /// Requests that no data server was there to answer.
    pub unavailable: u64,
}

/// How many numbers a `Counts` has in the text.
const NUMBERS: usize = 4;
const BYTES: usize = NUMBERS * size_of::<u64>();

impl Counts {
    fn numbers(self) -> [u64; NUMBERS] {
        [self.requests, self.bytes, self.handovers, self.unavailable]
    }

    /// Whether no number here is larger than the same number in `later`.
    pub fn is_within(self, later: Self) -> bool {
        let mut both = self.numbers().into_iter().zip(later.numbers());
        both.all(|(one, other)| one <= other)
    }

    fn write(self, text: &mut Vec<u8>) {
        text.extend(self.numbers().into_iter().flat_map(u64::to_be_bytes));
    }

    fn read(bytes: &[u8; BYTES]) -> Self {
        let (words, _) = bytes.as_chunks();
        let number = |at: usize| words.get(at).copied().map_or(0, u64::from_be_bytes);
        Self {
            requests: number(0),
            bytes: number(1),
            handovers: number(2),
            unavailable: number(3),
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, more: Self) {
        let sum = |one: &mut u64, other: u64| *one = one.saturating_add(other);
        sum(&mut self.requests, more.requests);
        sum(&mut self.bytes, more.bytes);
        sum(&mut self.handovers, more.handovers);
        sum(&mut self.unavailable, more.unavailable);
    }
}

/// Everything that a data server has counted: in all, and for each pool and route by the ids that these have in every
/// daemon. Names would not do, because they cannot tell apart two routes that differ only in their conditions.
///
/// ```text
///  incarnation (8 bytes) | counts of all (32) | how many pools (2) | of each pool: id (8), counts (32) | of each route the same
/// ```
///
/// All numbers are big-endian.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tallies {
    /// The run in which it counts. If it changes, counting has begun anew.
    pub incarnation: u64,
    /// The counts of the whole data server.
    pub all: Counts,
    /// The counts of each pool, by id.
    pools: BTreeMap<u64, Counts>,
    /// The counts of each route, by id.
    routes: BTreeMap<u64, Counts>,
}

impl Tallies {
    /// How many pools and how many routes one text holds: as many as there can be.
    pub const MOST: (usize, usize) = (MAX_POOLS as usize, TALLIED_ROUTES as usize);

    /// The counts of these pools and routes. There cannot be more than a text holds.
    pub fn new(
        incarnation: u64,
        all: Counts,
        pools: impl IntoIterator<Item = (u64, Counts)>,
        routes: impl IntoIterator<Item = (u64, Counts)>,
    ) -> Self {
        Self {
            incarnation,
            all,
            pools: pools.into_iter().take(Self::MOST.0).collect(),
            routes: routes.into_iter().take(Self::MOST.1).collect(),
        }
    }

    /// The counts of each pool, by id.
    pub fn pools(&self) -> &BTreeMap<u64, Counts> {
        &self.pools
    }

    /// The counts of each route, by id.
    pub fn routes(&self) -> &BTreeMap<u64, Counts> {
        &self.routes
    }

    /// The text in which it is sent.
    pub fn write(&self) -> Vec<u8> {
        let mut text = self.incarnation.to_be_bytes().to_vec();
        self.all.write(&mut text);
        text.extend((self.pools.len() as u16).to_be_bytes()); // at most MOST
        for (id, counts) in self.pools.iter().chain(&self.routes) {
            text.extend(id.to_be_bytes());
            counts.write(&mut text);
        }
        text
    }

    /// Reads such a text; `None` if it is something else.
    pub fn read(text: &[u8]) -> Option<Self> {
        let (incarnation, text) = text.split_first_chunk()?;
        let (all, text) = text.split_first_chunk()?;
        let (pools, text) = text.split_first_chunk()?;
        let (entries, rest) = text.as_chunks::<{ size_of::<u64>() + BYTES }>();
        if !rest.is_empty() {
            return None;
        }
        let (pools, routes) = entries.split_at_checked(u16::from_be_bytes(*pools).into())?;
        Some(Self {
            incarnation: u64::from_be_bytes(*incarnation),
            all: Counts::read(all),
            pools: each(pools, Self::MOST.0)?,
            routes: each(routes, Self::MOST.1)?,
        })
    }
}

/// Reads counts by id. Returns `None` if an id is there twice, or if there are more than `most`.
fn each(entries: &[[u8; size_of::<u64>() + BYTES]], most: usize) -> Option<BTreeMap<u64, Counts>> {
    let of = |entry: &[u8; size_of::<u64>() + BYTES]| {
        let (id, counts) = entry.split_first_chunk()?;
        let counts = counts.first_chunk()?;
        Some((u64::from_be_bytes(*id), Counts::read(counts)))
    };
    let all: BTreeMap<u64, Counts> = entries.iter().map(of).collect::<Option<_>>()?;
    (all.len() == entries.len() && all.len() <= most).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(requests: u64) -> Counts {
        Counts {
            requests,
            bytes: 2,
            handovers: 3,
            unavailable: 4,
        }
    }

    #[test]
    fn what_is_told_is_heard() {
        let tallies = Tallies::new(7, counts(258), [(9, counts(1))], [(9, counts(0))]);
        let number = |number: u8| [0, 0, 0, 0, 0, 0, 0, number];
        let rest = [number(2), number(3), number(4)].concat();
        let text = [
            &number(7)[..],
            &[0, 0, 0, 0, 0, 0, 1, 2],
            &rest,
            &[0, 1],
            &number(9),
            &number(1),
            &rest,
            &number(9),
            &number(0),
            &rest,
        ];
        assert_eq!(tallies.write(), text.concat());
        assert_eq!(Tallies::read(&text.concat()), Some(tallies));
    }

    #[test]
    fn what_is_none_is_not_heard() {
        let text = Tallies::new(1, counts(1), [(1, counts(1))], [(2, counts(1))]).write();
        let (head, entry) = (8 + BYTES + 2, 8 + BYTES);
        for end in 0..text.len() {
            let is_one = end >= head + entry && (end - head).is_multiple_of(entry);
            assert_eq!(Tallies::read(&text[..end]).is_some(), is_one, "{end}");
        }
        let twice = [&text[..], &text[head + entry..]].concat();
        assert_eq!(Tallies::read(&twice), None, "a route twice");
    }

    #[test]
    fn no_more_are_told_than_can_be() {
        let (pools, routes) = Tallies::MOST;
        let many = |most: usize| (0..most as u64 + 1).map(|id| (id, counts(id)));
        let told = Tallies::new(1, counts(1), many(pools), many(routes));
        assert_eq!((told.pools.len(), told.routes.len()), (pools, routes));
        let text = told.write();
        assert!(text.len() < 1 << 17, "{}", text.len());
        assert_eq!(Tallies::read(&text), Some(told));
        let one_more = [&text[..], &[0xff; 8 + BYTES]].concat();
        assert_eq!(Tallies::read(&one_more), None);
    }

    #[test]
    fn later_counts_are_no_less() {
        let later = counts(2);
        assert!(counts(1).is_within(later) && later.is_within(later));
        assert!(!later.is_within(counts(1)));
        let less = Counts {
            bytes: 1,
            ..counts(3)
        };
        assert!(!later.is_within(less));
    }
}
