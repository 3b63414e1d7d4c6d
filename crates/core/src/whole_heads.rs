//! Heads in several frames that were put together and judged lately (see [`crate::heads`]): whether what comes again is of
//! such a head, byte by byte. What got lost behind this node goes on from here then; anything else, nobody has judged.

use std::{collections::HashMap, hash::Hash, time::Duration};

use crate::Moment;

/// At a time; of more the oldest are forgotten.
const MOST: usize = 256;
/// A client that has not been answered tries again several times within it.
const KEPT: Duration = Duration::from_secs(30);

/// Heads of connections `K` that came in frames `F`: the last one of each.
#[derive(Debug)]
pub struct WholeHeads<K, F> {
    heads: HashMap<K, Whole<F>>,
}

#[derive(Debug)]
struct Whole<F> {
    /// Sequence number of the first byte.
    begin: u32,
    text: Vec<u8>,
    frames: Vec<F>,
    since: Moment,
}

impl<K, F> Default for WholeHeads<K, F> {
    fn default() -> Self {
        Self {
            heads: HashMap::new(),
        }
    }
}

impl<K: Eq + Hash + Copy, F> WholeHeads<K, F> {
    /// This head, and nothing behind it, was in these frames.
    pub fn add(&mut self, now: Moment, key: K, begin: u32, text: Vec<u8>, frames: Vec<F>) {
        self.heads.retain(|_, whole| now.since(whole.since) < KEPT);
        if self.heads.len() >= MOST {
            let oldest = self.heads.iter().min_by_key(|(_, whole)| whole.since);
            if let Some(key) = oldest.map(|(key, _)| *key) {
                self.heads.remove(&key);
            }
        }
        let whole = Whole {
            begin,
            text,
            frames,
            since: now,
        };
        self.heads.insert(key, whole);
    }

    /// The frames of the head that this payload begins in, if it says the same as far as that goes.
    pub fn again(&self, now: Moment, key: &K, seq: u32, payload: &[u8]) -> Option<&[F]> {
        let whole = self.heads.get(key)?;
        let at = seq.wrapping_sub(whole.begin) as usize;
        let here = whole.text.get(at..).filter(|here| !here.is_empty())?;
        let both = here.len().min(payload.len());
        let is_same = both > 0 && here[..both] == payload[..both];
        (is_same && now.since(whole.since) < KEPT).then_some(&whole.frames)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &[u8] = b"GET / HTTP/1.1\r\n\r\n";

    fn at(seconds: u64) -> Moment {
        Moment::after_epoch(Duration::from_secs(seconds))
    }

    #[test]
    fn what_says_the_same() {
        let begin = u32::MAX - 3;
        let mut heads = WholeHeads::default();
        heads.add(at(0), 'a', begin, HEAD.to_owned(), vec![1, 2]);
        let again = |seconds, key, from: u32, payload: &[u8]| {
            let seq = begin.wrapping_add(from);
            heads.again(at(seconds), &key, seq, payload).is_some()
        };
        for from in 0..HEAD.len() {
            for to in from + 1..=HEAD.len() {
                assert!(again(0, 'a', from as u32, &HEAD[from..to]));
            }
            let more = [&HEAD[from..], b"more"].concat();
            assert!(again(0, 'a', from as u32, &more));
            let mut other = HEAD[from..].to_owned();
            other[HEAD.len() - from - 1] ^= 1;
            assert!(!again(0, 'a', from as u32, &other));
        }
        assert!(!again(0, 'a', HEAD.len() as u32, b"more"));
        assert!(!again(0, 'a', u32::MAX, b"\nGET"));
        assert!(!again(0, 'a', 3, b""));
        assert!(!again(0, 'b', 0, HEAD));
        assert!(again(29, 'a', 0, HEAD));
        assert!(!again(30, 'a', 0, HEAD));
    }

    #[test]
    fn the_last_of_each_connection_and_not_too_many() {
        let mut heads = WholeHeads::default();
        heads.add(at(0), 0, 0, HEAD.to_owned(), vec![1]);
        heads.add(at(0), 0, 100, HEAD.to_owned(), vec![2]);
        assert_eq!(heads.again(at(0), &0, 0, HEAD), None);
        assert_eq!(heads.again(at(0), &0, 100, HEAD), Some(&[2][..]));
        for key in 1..=MOST {
            heads.add(at(1), key, 0, HEAD.to_owned(), vec![3]);
        }
        assert_eq!(heads.again(at(1), &0, 100, HEAD), None);
        assert_eq!(heads.heads.len(), MOST);
        heads.add(at(31), 7, 0, HEAD.to_owned(), vec![4]);
        assert_eq!(heads.heads.len(), 1);
    }
}
