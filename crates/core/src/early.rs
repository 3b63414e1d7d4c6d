//! What a client has sent too early, as a data server's door says, and comes again a moment later (`bpf/ds/early.h`).
//!
//! Nobody says when it is no longer too early: so it is tried again, soon at first, and the longer it has waited the later,
//! so that no connection is tried often, and none waits for much longer than it must.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::mem::take;
use std::time::Duration;

use crate::Moment;

/// Before the first try,
const SOON: Duration = Duration::from_micros(250);
/// and before another one this part of the time that it has waited.
const PART: u32 = 8;
/// For longer nothing waits: its client sends it again.
const LONGEST: Duration = Duration::from_secs(60);
/// Of all connections together, and of one: more than a client may have on its way.
const MOST_BYTES: usize = 64 << 20;
const MOST_BYTES_OF_ONE: usize = 1 << 20;

/// A part of a client's stream, as whoever has it come again keeps it.
pub trait Early {
    /// Sequence number of its first byte.
    fn seq(&self) -> u32;
    /// How many there are.
    fn bytes(&self) -> usize;
}

/// All that waits, by connection.
#[derive(Debug)]
pub struct Waiting<K, E> {
    flows: HashMap<K, Flow<E>>,
    /// Each connection once.
    due: BTreeMap<Moment, Vec<K>>,
    bytes: usize,
}

#[derive(Debug)]
struct Flow<E> {
    /// When the first of it came.
    since: Moment,
    /// In the order of the stream. Empty: it has just been tried.
    early: Vec<E>,
    bytes: usize,
}

impl<K, E> Default for Waiting<K, E> {
    fn default() -> Self {
        Self {
            flows: HashMap::new(),
            due: BTreeMap::new(),
            bytes: 0,
        }
    }
}

impl<K: Copy + Eq + Hash, E: Early> Waiting<K, E> {
    /// Something came too early, for the first time or again. False if there is no room for it, or it has waited for too long:
    /// then it is for its client to send it again.
    pub fn handle_early(&mut self, now: Moment, of: K, early: E) -> bool {
        let flow = self.flows.entry(of).or_insert_with(|| {
            self.due.entry(now + SOON).or_default().push(of);
            Flow {
                since: now,
                early: Vec::new(),
                bytes: 0,
            }
        });
        let (begin, bytes) = (early.seq(), early.bytes());
        let is_full = flow.bytes + bytes > MOST_BYTES_OF_ONE || self.bytes + bytes > MOST_BYTES;
        if is_full || now.since(flow.since) > LONGEST {
            return false;
        }
        // As TCP compares numbers: half of them are before, half behind.
        let is_before = |one: &E| begin.wrapping_sub(one.seq()) as i32 > 0;
        let at = flow.early.partition_point(is_before);
        match flow.early.get_mut(at).filter(|one| one.seq() == begin) {
            // Its client has sent it again.
            Some(same) if same.bytes() >= bytes => return true,
            Some(same) => {
                let before = std::mem::replace(same, early).bytes();
                flow.bytes -= before;
                self.bytes -= before;
            }
            None => flow.early.insert(at, early),
        }
        flow.bytes += bytes;
        self.bytes += bytes;
        true
    }

    /// When something is to be tried next.
    pub fn next_timeout(&self) -> Option<Moment> {
        self.due.keys().next().copied()
    }

    /// What is to be tried now, by connection, in the order of its stream. What is still too early comes back by
    /// [`handle_early`](Self::handle_early).
    pub fn poll(&mut self, now: Moment) -> Vec<(K, Vec<E>)> {
        let mut tried = Vec::new();
        while let Some(entry) = self.due.first_entry()
            && *entry.key() <= now
        {
            for of in entry.remove() {
                let Some(flow) = self.flows.get_mut(&of) else {
                    continue;
                };
                // Nothing has come back since the last time.
                if flow.early.is_empty() {
                    self.flows.remove(&of);
                    continue;
                }
                self.bytes -= take(&mut flow.bytes);
                let pause = (now.since(flow.since) / PART).max(SOON);
                self.due.entry(now + pause).or_default().push(of);
                tried.push((of, take(&mut flow.early)));
            }
        }
        tried
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Moment {
        Moment::after_epoch(Duration::from_millis(milliseconds))
    }

    #[derive(Debug, PartialEq, Eq)]
    struct Piece {
        seq: u32,
        len: usize,
    }

    impl Early for Piece {
        fn seq(&self) -> u32 {
            self.seq
        }

        fn bytes(&self) -> usize {
            self.len
        }
    }

    fn early(seq: u32, len: usize) -> Piece {
        Piece { seq, len }
    }

    fn numbers(tried: &[(char, Vec<Piece>)]) -> Vec<(char, Vec<u32>)> {
        let of = |(key, all): &(char, Vec<Piece>)| (*key, all.iter().map(|one| one.seq).collect());
        tried.iter().map(of).collect()
    }

    #[test]
    fn what_came_is_tried_once_in_the_order_of_its_stream() {
        let mut waiting = Waiting::default();
        for seq in [5, u32::MAX - 4, 0, 5] {
            assert!(waiting.handle_early(at(0), 'a', early(seq, 5)));
        }
        assert!(waiting.handle_early(at(0), 'b', early(1, 1)));
        assert!(waiting.poll(at(0)).is_empty());
        assert_eq!(waiting.next_timeout(), Some(at(0) + SOON));
        let tried = numbers(&waiting.poll(at(1)));
        assert_eq!(tried, [('a', vec![u32::MAX - 4, 0, 5]), ('b', vec![1])]);
        assert_eq!(waiting.bytes, 0);
        // Nothing has come back.
        assert!(waiting.poll(at(10)).is_empty());
        assert_eq!(waiting.next_timeout(), None);
        assert!(waiting.flows.is_empty());
    }

    #[test]
    fn the_longer_it_has_waited_the_later_it_is_tried() {
        let mut waiting = Waiting::default();
        let mut tries = 0;
        assert!(waiting.handle_early(at(0), 'a', early(1, 1)));
        while let Some(now) = waiting.next_timeout() {
            for (of, all) in waiting.poll(now) {
                tries += 1;
                for one in all {
                    waiting.handle_early(now, of, one);
                }
            }
        }
        // For a minute, and then never again.
        assert!((80..160).contains(&tries), "{tries}");
        assert_eq!(waiting.bytes, 0);
        assert!(waiting.handle_early(at(100_000), 'a', early(1, 1)));
    }

    #[test]
    fn of_two_that_begin_alike_the_longer_counts() {
        let mut waiting = Waiting::default();
        for bytes in [3, 9, 4] {
            assert!(waiting.handle_early(at(0), 'a', early(1, bytes)));
        }
        assert_eq!(waiting.bytes, 9);
        let tried = waiting.poll(at(1));
        assert_eq!(tried[0].1, [early(1, 9)]);
    }

    #[test]
    fn there_is_an_end_to_its_room() {
        let mut waiting = Waiting::default();
        let most = MOST_BYTES_OF_ONE as u32;
        for client in 0..64 {
            assert!(waiting.handle_early(at(0), client, early(0, MOST_BYTES_OF_ONE)));
            assert!(!waiting.handle_early(at(0), client, early(most, 1)));
        }
        assert!(!waiting.handle_early(at(0), 64, early(0, 1)));
        assert_eq!(waiting.poll(at(1)).len(), 64);
        assert!(waiting.handle_early(at(1), 65, early(0, 1)));
    }
}
