//! Data of a client that came too early for a data server's door, and is tried again a moment later
//! (`bpf/data_server/door/early.h`).
//!
//! Nothing tells when data is no longer too early, so it is tried again: soon at first, and less often the
//! longer it has waited. So no connection is tried often, and none waits much longer than it must.
//!
//! A request may wait only for an acknowledgement, which its client may delay for 40 ms. Then the client is
//! probed, and what waits is tried as soon as if it had just come.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::mem::take;
use std::time::Duration;

use crate::Moment;

/// The pause before the first try, and the shortest pause between two tries.
const SOON: Duration = Duration::from_micros(250);
/// The pause before any further try is the time that the data has waited, divided by this.
const PART: u32 = 8;
/// Nothing waits for longer than this: then its client has to send it again.
const LONGEST: Duration = Duration::from_secs(60);
/// A connection is not probed again before this long after the last probe.
const PROBE_PAUSE: Duration = Duration::from_millis(2);
/// The most bytes that wait of all connections together, and of one connection. The second is more than a client
/// may have on its way.
const MOST_BYTES: usize = 64 << 20;
const MOST_BYTES_OF_ONE: usize = 1 << 20;

/// A part of a client's stream, in the form in which the caller keeps it to send it in again.
pub trait Early {
    /// The sequence number of the part's first byte.
    fn seq(&self) -> u32;
    /// The number of bytes in the part.
    fn bytes(&self) -> usize;
}

/// All data that waits, by connection.
#[derive(Debug)]
pub struct Waiting<K, E> {
    flows: HashMap<K, Flow<E>>,
    /// When each connection is tried next; each connection is in it once.
    due: BTreeMap<Moment, Vec<K>>,
    bytes: usize,
}

#[derive(Debug)]
struct Flow<E> {
    /// When the first part came of what waits now.
    since: Moment,
    /// The pauses between tries grow from this moment on: when the first of it came, or the client was last probed.
    paced_from: Moment,
    /// The sequence number at which the data that was tried last begins.
    tried: Option<u32>,
    /// The key of this connection's place in `Waiting::due`.
    due: Moment,
    /// The part for which the client was last probed, by its sequence number, and when that was.
    probed: Option<(u32, Moment)>,
    /// The parts that wait, in the order of the stream; empty after a try, until a part comes back.
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
    /// Takes data that came too early, for the first time or again. Returns `false` if there is no room for it
    /// or it has waited for too long: then its client has to send it again.
    pub fn handle_early(&mut self, now: Moment, of: K, early: E) -> bool {
        let flow = self.flows.entry(of).or_insert_with(|| {
            self.due.entry(now + SOON).or_default().push(of);
            Flow {
                since: now,
                paced_from: now,
                tried: None,
                due: now + SOON,
                probed: None,
                early: Vec::new(),
                bytes: 0,
            }
        });
        let (begin, bytes) = (early.seq(), early.bytes());
        // The data before this part has been let in, so this part now waits for something else.
        if flow.early.is_empty() && flow.tried.is_some_and(|tried| is_before(tried, begin)) {
            flow.since = now;
            Self::try_soon(&mut self.due, now, of, flow);
        }
        let is_full = flow.bytes + bytes > MOST_BYTES_OF_ONE || self.bytes + bytes > MOST_BYTES;
        if is_full || now.since(flow.since) > LONGEST {
            return false;
        }
        let at = (flow.early).partition_point(|one| is_before(one.seq(), begin));
        match flow.early.get_mut(at).filter(|one| one.seq() == begin) {
            // The client has sent the same data again.
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

    /// The part that begins at `seq` waits only for an acknowledgement. Returns `true` if its client is to be
    /// probed for that now: once for each part, and not too often for each connection.
    pub fn probe(&mut self, now: Moment, of: K, seq: u32) -> bool {
        let Some(flow) = self.flows.get_mut(&of) else {
            return false;
        };
        let is_too_often = |(last, at): (u32, Moment)| last == seq || now.since(at) < PROBE_PAUSE;
        let waits = flow.early.iter().any(|one| one.seq() == seq);
        if !waits || flow.probed.is_some_and(is_too_often) {
            return false;
        }
        flow.probed = Some((seq, now));
        Self::try_soon(&mut self.due, now, of, flow);
        true
    }

    /// Has the connection tried as soon as if what waits had just come.
    fn try_soon(due: &mut BTreeMap<Moment, Vec<K>>, now: Moment, of: K, flow: &mut Flow<E>) {
        flow.paced_from = now;
        let soon = now + SOON;
        if flow.due <= soon {
            return;
        }
        if let Some(others) = due.get_mut(&flow.due) {
            others.retain(|one| *one != of);
            if others.is_empty() {
                due.remove(&flow.due);
            }
        }
        due.entry(soon).or_default().push(of);
        flow.due = soon;
    }

    /// When something is to be tried next.
    pub fn next_timeout(&self) -> Option<Moment> {
        self.due.keys().next().copied()
    }

    /// The data that is to be tried now, by connection, each in the order of its stream. What is still too early
    /// comes back by [`handle_early`](Self::handle_early).
    pub fn poll(&mut self, now: Moment) -> Vec<(K, Vec<E>)> {
        let mut tried = Vec::new();
        while let Some(entry) = self.due.first_entry()
            && *entry.key() <= now
        {
            for of in entry.remove() {
                let Some(flow) = self.flows.get_mut(&of) else {
                    continue;
                };
                let Some(first) = flow.early.first() else {
                    // Nothing has come back since the last time.
                    self.flows.remove(&of);
                    continue;
                };
                flow.tried = Some(first.seq());
                self.bytes -= take(&mut flow.bytes);
                flow.due = now + (now.since(flow.paced_from) / PART).max(SOON);
                self.due.entry(flow.due).or_default().push(of);
                tried.push((of, take(&mut flow.early)));
            }
        }
        tried
    }
}

/// Whether `one` is before `other` as TCP compares sequence numbers: of all numbers, half are before a given one
/// and half are behind it.
fn is_before(one: u32, other: u32) -> bool {
    other.wrapping_sub(one) as i32 > 0
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
        // It is tried for a minute, and then never again.
        assert!((80..160).contains(&tries), "{tries}");
        assert_eq!(waiting.bytes, 0);
        assert!(waiting.handle_early(at(100_000), 'a', early(1, 1)));
    }

    /// Pipelined requests wait like this, each for the response before it.
    #[test]
    fn who_waits_behind_another_has_not_waited_for_as_long() {
        let mut waiting = Waiting::default();
        let later = at(59_900);
        for seq in [u32::MAX, 9] {
            waiting.handle_early(at(0), 'a', early(seq, 5));
        }
        try_again(&mut waiting, at(10));
        assert_eq!(waiting.poll(later).len(), 1);
        assert!(waiting.next_timeout().unwrap().since(later) > SOON);
        // The first of the two has got in.
        let now = at(100) + LONGEST;
        assert!(waiting.handle_early(now, 'a', early(9, 5)));
        assert_eq!(waiting.next_timeout(), Some(now + SOON));
        assert_eq!(waiting.due.values().flatten().count(), 1);
        // The second part has not been let in, so its waiting time goes on and comes to its end.
        try_again(&mut waiting, now + LONGEST);
        waiting.poll(now + LONGEST + LONGEST);
        assert!(!waiting.handle_early(now + LONGEST + LONGEST, 'a', early(9, 5)));
    }

    /// Tries what is due now; all of it is still too early.
    fn try_again(waiting: &mut Waiting<char, Piece>, now: Moment) {
        for (of, all) in waiting.poll(now) {
            for one in all {
                waiting.handle_early(now, of, one);
            }
        }
    }

    #[test]
    fn a_client_is_probed_once_for_each_part() {
        let mut waiting = Waiting::default();
        assert!(!waiting.probe(at(0), 'a', 1), "nothing waits");
        waiting.handle_early(at(0), 'a', early(1, 5));
        assert!(!waiting.probe(at(0), 'a', 6), "that does not wait");
        assert!(waiting.probe(at(0), 'a', 1));
        for now in 0..10 {
            try_again(&mut waiting, at(now));
            assert!(!waiting.probe(at(now), 'a', 1));
        }
        waiting.handle_early(at(10), 'a', early(6, 5));
        assert!(waiting.probe(at(10), 'a', 6));
        waiting.handle_early(at(11), 'a', early(11, 5));
        assert!(!waiting.probe(at(11), 'a', 11), "too soon after the last");
        assert!(waiting.probe(at(12), 'a', 11));
        // The pause of one connection does not hold up another one.
        waiting.handle_early(at(12), 'b', early(11, 5));
        assert!(waiting.probe(at(12), 'b', 11));
    }

    #[test]
    fn after_a_probe_it_is_tried_soon() {
        let mut waiting = Waiting::default();
        for of in ['a', 'b'] {
            waiting.handle_early(at(0), of, early(1, 5));
        }
        for now in 0..8000 {
            try_again(&mut waiting, at(now));
        }
        // By now it is tried about once a second.
        let before = waiting.next_timeout().unwrap();
        let now = at(8000);
        assert!(before.since(now) > SOON);
        assert!(waiting.probe(now, 'a', 1));
        assert_eq!(waiting.next_timeout(), Some(now + SOON));
        assert_eq!(numbers(&waiting.poll(now + SOON)), [('a', vec![1])]);
        waiting.handle_early(now + SOON, 'a', early(1, 5));
        assert_eq!(waiting.next_timeout(), Some(now + SOON + SOON));
        assert_eq!(waiting.due.values().flatten().count(), 2);
    }

    #[test]
    fn a_probe_lets_nothing_wait_for_longer() {
        let mut waiting = Waiting::default();
        waiting.handle_early(at(0), 'a', early(1, 5));
        let end = at(0) + LONGEST;
        try_again(&mut waiting, end);
        assert!(waiting.probe(end, 'a', 1));
        let later = end + SOON;
        assert_eq!(waiting.poll(later).len(), 1);
        assert!(!waiting.handle_early(later, 'a', early(1, 5)));
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
