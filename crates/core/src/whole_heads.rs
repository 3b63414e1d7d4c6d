//! Heads in several frames that were put together and judged lately (see [`crate::heads`]). What comes of them again is
//! compared, byte by byte: what got lost behind this node goes on from here then, and anything else nobody has judged.
//! What clients were told to have come they do not send again, so that goes on from here several times by itself.
//!
//! There is room for so many frames. Where there is no more, the client that has most of them gives way: whatever one
//! client sends, the heads of the others are remembered.

use std::{collections::HashMap, time::Duration};

use crate::{
    Moment,
    heads::{Connection, who_gives_way},
    repeats::Repeats,
    shares::Shares,
};

/// Frames of all heads that are remembered at a time.
const ROOM: usize = 8192;
/// A client that has not been answered tries again several times within it, and so does what is here.
const KEPT: Duration = Duration::from_secs(35);
/// Of one connection: further requests may come before the first one has come to its server.
const MOST_OF_ONE: usize = 4;
/// Between two looks for those that are older.
const SWEEP: Duration = Duration::from_secs(1);

/// Heads of connections `K` that came in frames `F`: the last ones of each.
#[derive(Debug)]
pub struct WholeHeads<K: Connection, F> {
    /// In the order in which they were added.
    heads: HashMap<K, Vec<Whole<F>>>,
    /// Of each client, how many frames are here.
    frames: Shares<K::Client>,
    /// When the older ones were forgotten.
    swept: Moment,
}

#[derive(Debug)]
struct Whole<F> {
    /// Sequence number of the first byte.
    begin: u32,
    text: Vec<u8>,
    frames: Vec<F>,
    since: Moment,
    repeats: Repeats,
}

impl<F> Whole<F> {
    /// Whether this payload begins in it, and says the same as far as it goes.
    fn says(&self, seq: u32, payload: &[u8]) -> bool {
        let at = seq.wrapping_sub(self.begin) as usize;
        let here = self.text.get(at..).unwrap_or_default();
        let both = here.len().min(payload.len());
        both > 0 && here[..both] == payload[..both]
    }
}

impl<K: Connection, F> Default for WholeHeads<K, F> {
    fn default() -> Self {
        Self {
            heads: HashMap::new(),
            frames: Shares::default(),
            swept: Moment::default(),
        }
    }
}

impl<K: Connection, F> WholeHeads<K, F> {
    /// This head, and nothing behind it, was in these frames. `is_acknowledged`: its client was told that some of it had
    /// come.
    pub fn add(
        &mut self,
        now: Moment,
        key: K,
        begin: u32,
        text: Vec<u8>,
        frames: Vec<F>,
        is_acknowledged: bool,
    ) {
        self.sweep(now);
        self.forget(&key, |all| all.iter().position(|one| one.begin == begin));
        self.forget(&key, |all| (all.len() >= MOST_OF_ONE).then_some(0));
        self.frames.add(key.client(), frames.len());
        self.heads.entry(key).or_default().push(Whole {
            begin,
            text,
            frames,
            since: now,
            repeats: match is_acknowledged {
                true => Repeats::from(now),
                false => Repeats::never(),
            },
        });
        self.make_room();
    }

    fn sweep(&mut self, now: Moment) {
        if now.since(self.swept) < SWEEP {
            return;
        }
        self.swept = now;
        self.heads.retain(|key, all| {
            for old in all.extract_if(.., |one| now.since(one.since) >= KEPT) {
                self.frames.remove(key.client(), old.frames.len());
            }
            !all.is_empty()
        });
    }

    /// Removes one head of a connection, if there is one to remove.
    fn forget(&mut self, key: &K, which: impl FnOnce(&[Whole<F>]) -> Option<usize>) {
        let Some(all) = self.heads.get_mut(key) else {
            return;
        };
        if let Some(index) = which(all) {
            let whole = all.remove(index);
            self.frames.remove(key.client(), whole.frames.len());
        }
        if all.is_empty() {
            self.heads.remove(key);
        }
    }

    fn make_room(&mut self) {
        while self.frames.sum() > ROOM {
            let oldest = |all: &Vec<Whole<F>>| all.first().map(|one| one.since);
            let Some(key) = who_gives_way(&self.frames, &self.heads, oldest) else {
                return;
            };
            self.forget(&key, |_| Some(0));
        }
    }

    /// The frames of the head that this payload begins in, if it says the same as far as that goes.
    pub fn again(&self, now: Moment, key: &K, seq: u32, payload: &[u8]) -> Option<&[F]> {
        let all = self.heads.get(key)?;
        let whole = all.iter().rev().find(|one| one.says(seq, payload))?;
        (now.since(whole.since) < KEPT).then_some(&whole.frames)
    }

    /// The frames of each head of which it is time that it comes to its server once more, should it not have come.
    pub fn due(&mut self, now: Moment) -> Vec<Vec<F>>
    where
        F: Clone,
    {
        let due = (self.heads.values_mut().flatten()).filter_map(|whole| {
            let is_due = whole.repeats.is_due(now);
            is_due.then(|| whole.frames.clone())
        });
        due.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, SocketAddrV4};

    const HEAD: &[u8] = b"GET / HTTP/1.1\r\n\r\n";

    fn at(seconds: u64) -> Moment {
        Moment::after_epoch(Duration::from_secs(seconds))
    }

    fn connection(client: u8, port: u16) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, client), port)
    }

    #[test]
    fn what_says_the_same() {
        let begin = u32::MAX - 3;
        let mut heads = WholeHeads::default();
        let (here, elsewhere) = (connection(1, 1), connection(1, 2));
        heads.add(at(0), here, begin, HEAD.to_owned(), vec![1, 2], false);
        let again = |seconds, key, from: u32, payload: &[u8]| {
            let seq = begin.wrapping_add(from);
            heads.again(at(seconds), &key, seq, payload).is_some()
        };
        for from in 0..HEAD.len() {
            for to in from + 1..=HEAD.len() {
                assert!(again(0, here, from as u32, &HEAD[from..to]));
            }
            let more = [&HEAD[from..], b"more"].concat();
            assert!(again(0, here, from as u32, &more));
            let mut other = HEAD[from..].to_owned();
            other[HEAD.len() - from - 1] ^= 1;
            assert!(!again(0, here, from as u32, &other));
        }
        assert!(!again(0, here, HEAD.len() as u32, b"more"));
        assert!(!again(0, here, u32::MAX, b"\nGET"));
        assert!(!again(0, here, 3, b""));
        assert!(!again(0, elsewhere, 0, HEAD));
        assert!(again(34, here, 0, HEAD));
        assert!(!again(35, here, 0, HEAD));
    }

    #[test]
    fn the_last_ones_of_each_connection() {
        let mut heads = WholeHeads::default();
        let key = connection(1, 1);
        for number in 0..=MOST_OF_ONE as u32 {
            let begin = number * 100;
            heads.add(at(0), key, begin, HEAD.to_owned(), vec![number; 2], false);
        }
        assert_eq!(heads.again(at(0), &key, 0, HEAD), None);
        assert_eq!(heads.again(at(0), &key, 100, HEAD), Some(&[1, 1][..]));
        assert_eq!(heads.again(at(0), &key, 400, HEAD), Some(&[4, 4][..]));
        // In its place, what was judged there later.
        heads.add(at(0), key, 100, HEAD.to_owned(), vec![9], false);
        assert_eq!(heads.again(at(0), &key, 100, HEAD), Some(&[9][..]));
        assert_eq!(heads.frames.sum(), 2 * MOST_OF_ONE - 1);
        heads.add(at(36), connection(1, 2), 0, HEAD.to_owned(), vec![6], false);
        assert_eq!((heads.heads.len(), heads.frames.sum()), (1, 1));
    }

    /// However many a client sends, those of the others stay.
    #[test]
    fn who_has_most_gives_way() {
        let mut heads = WholeHeads::default();
        let honest = connection(1, 1);
        heads.add(at(0), honest, 0, HEAD.to_owned(), vec![0; 4], true);
        let most = ROOM as u16 / 2;
        for port in 0..2 * most {
            let loud = connection(2, port);
            heads.add(at(1), loud, 0, HEAD.to_owned(), vec![0; 2], false);
            assert!(heads.frames.sum() <= ROOM);
        }
        assert_eq!(heads.frames.sum(), ROOM);
        assert!(heads.again(at(1), &honest, 0, HEAD).is_some());
        assert_eq!(heads.due(at(1)), [[0; 4]]);
    }

    #[test]
    fn what_was_acknowledged_comes_again() {
        let mut heads = WholeHeads::default();
        heads.add(
            at(0),
            connection(1, 1),
            0,
            HEAD.to_owned(),
            vec![1, 2],
            true,
        );
        heads.add(at(0), connection(1, 2), 0, HEAD.to_owned(), vec![3], false);
        assert!(heads.due(at(0)).is_empty());
        assert_eq!(heads.due(at(1)), [[1, 2]]);
        assert!(heads.due(at(1)).is_empty());
        // Although another one of its connection has come.
        heads.add(
            at(2),
            connection(1, 1),
            100,
            HEAD.to_owned(),
            vec![4],
            false,
        );
        assert_eq!(heads.due(at(30)), [[1, 2]]);
    }
}
