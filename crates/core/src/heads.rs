//! Heads of requests that come in several frames, put together.
//!
//! Nothing of such a head has gone to a server yet, so its client has it still, and sends it again: what is missing
//! here comes by itself. A client that may not send more before what has come is acknowledged has to be told so, and
//! does not have that any more: then it must go to the server from here, again and again. It is told of all that came
//! before as well, so that must have come to its server.

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::Hash,
    time::Duration,
};

use crate::Moment;

/// The longest head, bytes.
pub const LONGEST: usize = 64 << 10;
/// So much a client sends before it is answered, if its segments are not small: ten of them, at first.
const UNANSWERED: usize = 8 << 10;
/// How many are put together at a time.
const MOST: usize = 1024;
/// How long one may take.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Heads of connections `K` that came in frames `F`.
#[derive(Debug)]
pub struct Heads<K, F> {
    open: HashMap<K, Open<F>>,
}

#[derive(Debug)]
struct Open<F> {
    /// Sequence number of the first byte.
    begin: u32,
    text: Vec<u8>,
    frames: Vec<F>,
    since: Moment,
    /// How much of it the client was told to have come.
    acknowledged: usize,
}

/// What has become of a frame.
#[derive(Debug, PartialEq, Eq)]
pub enum Step<F> {
    /// It is kept, or was of no use.
    Waits,
    /// Its client may not send more before it hears that this has come: see [`Heads::acknowledge`].
    Stuck,
    /// The head is whole: all of what has come, in its order.
    Whole {
        /// From the first byte of the request on.
        text: Vec<u8>,
        /// Where that came in.
        frames: Vec<F>,
        /// Whether the client was told that some of it has come, and will not send that again.
        is_acknowledged: bool,
    },
    /// The head is longer than any that is put together. Its first frame.
    TooLong(F),
    /// It is of no head that is put together here.
    Foreign(F),
}

impl<K, F> Default for Heads<K, F> {
    fn default() -> Self {
        Self {
            open: HashMap::new(),
        }
    }
}

impl<K: Eq + Hash + Copy, F> Heads<K, F> {
    /// A head begins, which is seldom all in this frame.
    pub fn begin(&mut self, now: Moment, key: K, seq: u32, payload: &[u8], frame: F) -> Step<F> {
        if ends(payload) {
            self.open.remove(&key);
            return Step::Whole {
                text: payload.to_owned(),
                frames: vec![frame],
                is_acknowledged: false,
            };
        }
        let full = self.open.len() >= MOST;
        match self.open.entry(key) {
            // More of it may be here than in this frame.
            Entry::Occupied(open) if open.get().begin == seq => self.add(key, seq, payload, frame),
            Entry::Vacant(_) if full => Step::Waits,
            entry => {
                entry.insert_entry(Open {
                    begin: seq,
                    text: payload.to_owned(),
                    frames: vec![frame],
                    since: now,
                    acknowledged: 0,
                });
                Step::Waits
            }
        }
    }

    /// More of a connection, maybe of its head.
    pub fn add(&mut self, key: K, seq: u32, payload: &[u8], frame: F) -> Step<F> {
        let Some(open) = self.open.get_mut(&key) else {
            return Step::Foreign(frame);
        };
        // At most LONGEST and a frame.
        let here = open.text.len() as u32;
        let at = seq.wrapping_sub(open.begin);
        let known = here.wrapping_sub(at) as usize;
        if at > here {
            // Before the head, or behind a gap.
            return if at > u32::MAX / 2 {
                Step::Foreign(frame)
            } else {
                Step::Waits
            };
        }
        let seen = known.min(payload.len());
        if open.text[at as usize..][..seen] != payload[..seen] {
            // The client has said something else there before, which is what counts.
            return Step::Waits;
        }
        let is_new = known < payload.len();
        if is_new {
            open.text.extend(&payload[known..]);
            open.frames.push(frame);
        }
        let is_whole = ends(&open.text);
        if !is_whole && open.text.len() <= LONGEST {
            let is_stuck = !is_new || open.text.len() - open.acknowledged > UNANSWERED;
            return if is_stuck { Step::Stuck } else { Step::Waits };
        }
        let Some(mut open) = self.open.remove(&key) else {
            return Step::Waits; // it was there just now
        };
        if is_whole {
            Step::Whole {
                text: open.text,
                frames: open.frames,
                is_acknowledged: open.acknowledged > 0,
            }
        } else {
            Step::TooLong(open.frames.swap_remove(0)) // each has the frame that it began with
        }
    }

    /// The frame that a head began with which is not whole yet.
    pub fn first(&self, key: &K) -> Option<&F> {
        self.open.get(key)?.frames.first()
    }

    /// All before this sequence number has come to the server. If the head of this connection begins there, its client is to
    /// be told that all before another one has come here, which comes with the last frame.
    pub fn acknowledge(&mut self, key: &K, come: u32) -> Option<(u32, &F)> {
        let open = self.open.get_mut(key).filter(|open| open.begin == come)?;
        open.acknowledged = open.text.len();
        // At most LONGEST.
        let next = open.begin.wrapping_add(open.text.len() as u32);
        Some((next, open.frames.last()?))
    }

    /// The first frames of those that have taken too long, which are forgotten here.
    pub fn late(&mut self, now: Moment) -> Vec<F> {
        let is_late = |_: &K, open: &mut Open<F>| now.since(open.since) >= PATIENCE;
        let late = self.open.extract_if(is_late);
        late.map(|(_, mut open)| open.frames.swap_remove(0)) // each has the frame that it began with
            .collect()
    }
}

/// Whether an empty line is in it, behind what may come before a request.
fn ends(text: &[u8]) -> bool {
    head_length(text).is_some()
}

/// Where the head ends that the text begins with: behind its empty line.
pub fn head_length(text: &[u8]) -> Option<usize> {
    let begin = text
        .iter()
        .position(|byte| !matches!(byte, b'\r' | b'\n'))?;
    let mut at = begin;
    while let Some(end) = text[at..].iter().position(|&byte| byte == b'\n') {
        let line = &text[at..at + end];
        at += end + 1;
        if line.iter().all(|&byte| byte == b'\r') {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &[u8] = b"GET /a HTTP/1.1\r\nHost: b\r\n\r\n";

    fn at(seconds: u64) -> Moment {
        Moment::after_epoch(Duration::from_secs(seconds))
    }

    #[test]
    fn where_a_head_ends() {
        assert_eq!(head_length(HEAD), Some(HEAD.len()));
        assert_eq!(
            head_length(&[b"\r\n\n", HEAD, b"body"].concat()),
            Some(HEAD.len() + 3)
        );
        assert_eq!(head_length(b"GET / HTTP/1.1\n\n"), Some(16));
        assert_eq!(head_length(&HEAD[..HEAD.len() - 1]), None);
        assert_eq!(head_length(b"\r\n\r\n"), None);
    }

    /// However it is cut, and with everything sent again at every step.
    #[test]
    fn put_together_again() {
        let begin = u32::MAX - 5;
        for first in 1..HEAD.len() {
            for second in first..HEAD.len() {
                let mut heads = Heads::default();
                let seq = |offset: usize| begin.wrapping_add(offset as u32);
                assert_eq!(heads.begin(at(0), 1, begin, &HEAD[..first], 0), Step::Waits);
                assert_eq!(heads.begin(at(0), 1, begin, &HEAD[..first], 0), Step::Stuck);
                assert_eq!(heads.acknowledge(&1, seq(1)), None);
                assert_eq!(heads.acknowledge(&2, begin), None);
                assert_eq!(heads.acknowledge(&1, begin), Some((seq(first), &0)));
                // A gap, and another connection.
                if second > first {
                    assert_eq!(heads.add(1, seq(second), &HEAD[second..], 9), Step::Waits);
                }
                assert_eq!(heads.add(2, seq(first), b"x", 9), Step::Foreign(9));
                if second > first {
                    let more = &HEAD[first..second];
                    assert_eq!(heads.add(1, seq(first), more, 1), Step::Waits);
                    assert_eq!(heads.add(1, seq(first), more, 1), Step::Stuck);
                    assert_eq!(heads.acknowledge(&1, begin), Some((seq(second), &1)));
                    assert_eq!(heads.first(&1), Some(&0));
                }
                let text = HEAD.to_owned();
                let frames = if second > first {
                    vec![0, 1, 2]
                } else {
                    vec![0, 2]
                };
                // It may overlap with what came.
                let from = first.min(second - 1);
                // What says something else is not taken.
                let mut other = HEAD[from..].to_owned();
                other[0] ^= 1;
                assert_eq!(heads.add(1, seq(from), &other, 9), Step::Waits);
                let whole = heads.add(1, seq(from), &HEAD[from..], 2);
                let expected = Step::Whole {
                    text,
                    frames,
                    is_acknowledged: true,
                };
                assert_eq!(whole, expected);
                assert_eq!(heads.add(1, seq(0), HEAD, 3), Step::Foreign(3));
            }
        }
    }

    #[test]
    fn what_never_ends() {
        let mut heads = Heads::default();
        assert_eq!(heads.begin(at(0), 1, 0, b"GET /", 0), Step::Waits);
        let (mut sent, mut heard) = (5u32, 0);
        let line = [b'x'; 1000];
        loop {
            sent += 1000;
            match heads.add(1, sent - 1000, &line, 1) {
                Step::Waits => {}
                Step::Stuck => {
                    let (next, _) = heads.acknowledge(&1, 0).unwrap();
                    assert_eq!(next, sent);
                    assert!((sent - heard) as usize <= UNANSWERED + 1000);
                    heard = next;
                }
                step => {
                    assert_eq!(step, Step::TooLong(0));
                    break;
                }
            }
        }
        assert!(sent as usize > LONGEST);
    }

    #[test]
    fn all_in_one() {
        let mut heads = Heads::default();
        let whole = || Step::Whole {
            text: HEAD.to_owned(),
            frames: vec![7],
            is_acknowledged: false,
        };
        assert_eq!(heads.begin(at(0), 1, 50, HEAD, 7), whole());
        assert_eq!(heads.begin(at(0), 1, 50, &HEAD[..5], 1), Step::Waits);
        assert_eq!(heads.begin(at(0), 1, 50, HEAD, 7), whole());
        assert!(heads.open.is_empty());
    }

    /// However it is kept going.
    #[test]
    fn what_takes_too_long() {
        let mut heads = Heads::default();
        assert_eq!(heads.begin(at(0), 1, 0, b"GET /", 7), Step::Waits);
        assert_eq!(heads.begin(at(5), 2, 0, b"GET /", 8), Step::Waits);
        assert_eq!(heads.add(1, 5, b"x", 1), Step::Waits);
        assert_eq!(heads.late(at(9)), []);
        assert_eq!(heads.late(at(10)), [7]);
        assert_eq!(heads.add(1, 6, b"x", 1), Step::Foreign(1));
        assert_eq!(heads.late(at(15)), [8]);
    }

    #[test]
    fn a_head_that_begins_elsewhere_replaces_it() {
        let mut heads = Heads::default();
        assert_eq!(heads.begin(at(0), 1, 50, b"GET /", 0), Step::Waits);
        assert_eq!(heads.begin(at(0), 1, 0, &HEAD[..5], 1), Step::Waits);
        let (text, frames) = (HEAD.to_owned(), vec![1, 2]);
        assert_eq!(
            heads.add(1, 5, &HEAD[5..], 2),
            Step::Whole {
                text,
                frames,
                is_acknowledged: false
            }
        );
    }

    #[test]
    fn no_more_than_there_is_room_for() {
        let mut heads = Heads::default();
        for key in 0..=MOST {
            assert_eq!(heads.begin(at(0), key, 0, b"GET /", 0), Step::Waits);
        }
        assert_eq!(heads.open.len(), MOST);
        assert_eq!(heads.late(at(10)).len(), MOST);
        assert!(heads.open.is_empty());
    }
}
