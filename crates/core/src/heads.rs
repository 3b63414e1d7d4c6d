//! Heads of requests that come in several frames, put together.
//!
//! Nothing of such a head has gone to a server yet, so its client has it still, and sends it again: what is missing
//! here comes by itself. A client that may not send more before what has come is acknowledged has to be told so, and
//! does not have that any more: then it must go to the server from here, again and again. It is told of all that came
//! before as well, so that must have come to its server.
//!
//! There is room for so many frames. Where there is no more, the client that has most of them gives way: its head that has
//! waited longest is refused. So one that never ends its heads is in nobody's way but its own.

use std::{
    collections::HashMap,
    hash::Hash,
    net::{Ipv4Addr, SocketAddrV4},
    time::Duration,
};

use baton_wire::{Address, Flow};

use crate::{Moment, shares::Shares};

/// The longest head, bytes.
pub const LONGEST: usize = 64 << 10;
/// So much a client sends before it is answered, if its segments are not small: ten of them, at first.
const UNANSWERED: usize = 8 << 10;
/// In so many frames a head may come: small ones cost more memory than what they carry.
const MOST_FRAMES: usize = 1024;
/// Frames of all heads that are put together at a time.
const ROOM: usize = 8192;
/// Between two answers to a client that says nothing new: however often it repeats itself, or what is said of it comes
/// back here as if it had.
pub const PAUSE: Duration = Duration::from_millis(20);
/// Whoever says no more for so long may not before it hears that this has come (Nagle's algorithm, RFC 896): as long as
/// Linux delays an acknowledgement at least (TCP_DELACK_MIN in include/net/tcp.h).
pub const DELAY: Duration = Duration::from_millis(40);
/// How long one may take.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// What names a connection, and tells whose it is.
pub trait Connection: Copy + Eq + Hash {
    /// Who has connections.
    type Client: Copy + Eq + Hash;

    /// Whose this is.
    fn client(&self) -> Self::Client;
}

impl Connection for Flow {
    type Client = Address;

    fn client(&self) -> Address {
        Flow::client(*self).address
    }
}

impl Connection for SocketAddrV4 {
    type Client = Ipv4Addr;

    fn client(&self) -> Ipv4Addr {
        *self.ip()
    }
}

/// The oldest connection of the client that has most frames. Who has frames has a head.
pub(crate) fn who_gives_way<K: Connection, V, Age: Ord>(
    frames: &Shares<K::Client>,
    all: &HashMap<K, V>,
    age: impl Fn(&V) -> Age,
) -> Option<K> {
    let greatest = frames.greatest();
    let of_greatest = all.iter().filter(|(key, _)| Some(key.client()) == greatest);
    let oldest = of_greatest.min_by_key(|(_, one)| age(one));
    oldest.map(|(key, _)| *key)
}

/// Heads of connections `K` that came in frames `F`.
#[derive(Debug)]
pub struct Heads<K: Connection, F> {
    open: HashMap<K, Open<F>>,
    /// Of each client, how many frames are here.
    frames: Shares<K::Client>,
    /// The first frames of those that had to give way.
    displaced: Vec<F>,
}

#[derive(Debug)]
struct Open<F> {
    /// Sequence number of the first byte.
    begin: u32,
    text: Vec<u8>,
    frames: Vec<F>,
    /// Came after all of them, with nothing new.
    repeated: Option<F>,
    since: Moment,
    /// How much of it the client was told to have come.
    acknowledged: usize,
    /// When its client said nothing new for the last time that counted.
    stuck: Option<Moment>,
    /// When it said something new for the last time.
    latest: Moment,
    /// How much of it its client was quiet after.
    quiet: usize,
}

impl<F> Open<F> {
    /// The frame that it began with, which each has.
    fn into_first(mut self) -> F {
        self.frames.swap_remove(0)
    }
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

impl<K: Connection, F> Default for Heads<K, F> {
    fn default() -> Self {
        Self {
            open: HashMap::new(),
            frames: Shares::default(),
            displaced: Vec::new(),
        }
    }
}

impl<K: Connection, F> Heads<K, F> {
    /// A head begins, which is seldom all in this frame.
    pub fn begin(&mut self, now: Moment, key: K, seq: u32, payload: &[u8], frame: F) -> Step<F> {
        let is_more = |open: &Open<F>| open.begin == seq;
        if ends(payload) {
            self.remove(&key);
            return Step::Whole {
                text: payload.to_owned(),
                frames: vec![frame],
                is_acknowledged: false,
            };
        }
        // More of it may be here than in this frame.
        if self.open.get(&key).is_some_and(is_more) {
            return self.add(now, key, seq, payload, frame);
        }
        self.remove(&key);
        self.frames.add(key.client(), 1);
        let open = Open {
            begin: seq,
            text: payload.to_owned(),
            frames: vec![frame],
            repeated: None,
            since: now,
            acknowledged: 0,
            stuck: None,
            latest: now,
            quiet: 0,
        };
        self.open.insert(key, open);
        self.make_room();
        Step::Waits
    }

    /// A request begins at this sequence number, so whatever lies before it has gone its way. A head that began there did so
    /// without what is here, as when its client has sent all of it again in one frame.
    pub fn pass(&mut self, key: &K, seq: u32) {
        let is_before =
            |open: &Open<F>| seq.wrapping_sub(open.begin).wrapping_sub(1) < u32::MAX / 2;
        if self.open.get(key).is_some_and(is_before) {
            self.remove(key);
        }
    }

    fn remove(&mut self, key: &K) -> Option<Open<F>> {
        let open = self.open.remove(key)?;
        self.frames.remove(key.client(), open.frames.len());
        Some(open)
    }

    /// Has clients give way that have most frames, until there is room for all.
    fn make_room(&mut self) {
        while self.frames.sum() > ROOM {
            let Some(key) = who_gives_way(&self.frames, &self.open, |open| open.latest) else {
                return;
            };
            let displaced = self.remove(&key).map(Open::into_first);
            self.displaced.extend(displaced);
        }
    }

    /// More of a connection, maybe of its head.
    pub fn add(&mut self, now: Moment, key: K, seq: u32, payload: &[u8], frame: F) -> Step<F> {
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
            self.frames.add(key.client(), 1);
            open.repeated = None;
            open.latest = now;
        } else {
            open.repeated = Some(frame);
        }
        let is_whole = ends(&open.text);
        let is_too_long = open.text.len() > LONGEST || open.frames.len() > MOST_FRAMES;
        if !is_whole && !is_too_long {
            let is_stuck = match is_new {
                true => open.text.len() - open.acknowledged > UNANSWERED,
                false => open.stuck.is_none_or(|at| now.since(at) >= PAUSE),
            };
            if is_stuck && !is_new {
                open.stuck = Some(now);
            }
            self.make_room();
            return if is_stuck { Step::Stuck } else { Step::Waits };
        }
        let Some(open) = self.remove(&key) else {
            return Step::Waits; // it was there just now
        };
        if is_whole {
            Step::Whole {
                text: open.text,
                frames: open.frames,
                is_acknowledged: open.acknowledged > 0,
            }
        } else {
            Step::TooLong(open.into_first())
        }
    }

    /// The frame that a head began with which is not whole yet.
    pub fn first(&self, key: &K) -> Option<&F> {
        self.open.get(key)?.frames.first()
    }

    /// All before this sequence number has come to the server. If the head of this connection begins there, its client is to
    /// be told that all before another one has come here, which comes with the frame that came last: only that has echoed
    /// the last timestamp which the client has seen, and an older one is no news to it (PAWS, RFC 7323, 5).
    pub fn acknowledge(&mut self, key: &K, come: u32) -> Option<(u32, &F)> {
        let open = self.open.get_mut(key).filter(|open| open.begin == come)?;
        open.acknowledged = open.text.len();
        // At most LONGEST.
        let next = open.begin.wrapping_add(open.text.len() as u32);
        let latest = open.repeated.as_ref().or(open.frames.last());
        Some((next, latest?))
    }

    /// Whose clients may wait for an acknowledgement, once for each time that they say something new.
    pub fn quiet(&mut self, now: Moment) -> Vec<K> {
        let mut keys = Vec::new();
        for (key, open) in &mut self.open {
            let here = open.text.len();
            if open.acknowledged.max(open.quiet) < here && now.since(open.latest) >= DELAY {
                open.quiet = here;
                keys.push(*key);
            }
        }
        keys
    }

    /// The first frames of those that have taken too long or had to give way, which are forgotten here.
    pub fn late(&mut self, now: Moment) -> Vec<F> {
        let is_late = |_: &K, open: &mut Open<F>| now.since(open.since) >= PATIENCE;
        let mut late = std::mem::take(&mut self.displaced);
        for (key, open) in self.open.extract_if(is_late) {
            self.frames.remove(key.client(), open.frames.len());
            late.push(open.into_first());
        }
        late
    }

    /// What has come of all heads, each in its order, to be put together somewhere else.
    pub fn give_up(&mut self) -> Vec<F> {
        self.frames = Shares::default();
        self.open
            .drain()
            .flat_map(|(_, open)| open.frames)
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

    /// A client's connections have numbers in a row.
    const CONNECTIONS: i32 = 100_000;

    impl Connection for i32 {
        type Client = i32;

        fn client(&self) -> i32 {
            self / CONNECTIONS
        }
    }

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
                assert_eq!(heads.begin(at(0), 1, begin, &HEAD[..first], 7), Step::Stuck);
                assert_eq!(heads.acknowledge(&1, seq(1)), None);
                assert_eq!(heads.acknowledge(&2, begin), None);
                assert_eq!(heads.acknowledge(&1, begin), Some((seq(first), &7)));
                // A gap, and another connection.
                if second > first {
                    assert_eq!(
                        heads.add(at(0), 1, seq(second), &HEAD[second..], 9),
                        Step::Waits
                    );
                }
                assert_eq!(heads.add(at(0), 2, seq(first), b"x", 9), Step::Foreign(9));
                if second > first {
                    let more = &HEAD[first..second];
                    assert_eq!(heads.add(at(0), 1, seq(first), more, 1), Step::Waits);
                    assert_eq!(heads.acknowledge(&1, begin), Some((seq(second), &1)));
                    assert_eq!(heads.add(at(1), 1, seq(first), more, 8), Step::Stuck);
                    assert_eq!(heads.acknowledge(&1, begin), Some((seq(second), &8)));
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
                assert_eq!(heads.add(at(0), 1, seq(from), &other, 9), Step::Waits);
                let whole = heads.add(at(0), 1, seq(from), &HEAD[from..], 2);
                let expected = Step::Whole {
                    text,
                    frames,
                    is_acknowledged: true,
                };
                assert_eq!(whole, expected);
                assert_eq!(heads.add(at(0), 1, seq(0), HEAD, 3), Step::Foreign(3));
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
            match heads.add(at(0), 1, sent - 1000, &line, 1) {
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
    fn who_says_no_more() {
        let after = |ms| Moment::after_epoch(Duration::from_millis(ms));
        let mut heads = Heads::default();
        assert_eq!(heads.begin(after(0), 1, 0, b"GET /", 0), Step::Waits);
        assert_eq!(heads.quiet(after(39)), []);
        assert_eq!(heads.quiet(after(40)), [1]);
        assert_eq!(heads.quiet(after(80)), []);
        assert_eq!(heads.add(after(100), 1, 5, b"a", 1), Step::Waits);
        assert_eq!(heads.quiet(after(139)), []);
        assert_eq!(heads.quiet(after(140)), [1]);
        assert_eq!(heads.add(after(150), 1, 6, b"b", 2), Step::Waits);
        assert_eq!(heads.acknowledge(&1, 0), Some((7, &2)));
        assert_eq!(heads.quiet(after(300)), []);
    }

    /// A thousand copies of what has come are answered like one, until a client may have waited.
    #[test]
    fn who_repeats_itself() {
        let after = |ms| Moment::after_epoch(Duration::from_millis(ms));
        let mut heads = Heads::default();
        assert_eq!(heads.begin(after(0), 1, 0, b"GET /", 0), Step::Waits);
        let mut stuck = Vec::new();
        for ms in 0..50 {
            for _ in 0..20 {
                if heads.add(after(ms), 1, 0, b"GET /", 1) == Step::Stuck {
                    stuck.push(ms);
                }
            }
        }
        assert_eq!(stuck, [0, 20, 40]);
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
        assert_eq!(heads.add(at(5), 1, 5, b"x", 1), Step::Waits);
        assert_eq!(heads.late(at(9)), []);
        assert_eq!(heads.late(at(10)), [7]);
        assert_eq!(heads.add(at(10), 1, 6, b"x", 1), Step::Foreign(1));
        assert_eq!(heads.late(at(15)), [8]);
    }

    #[test]
    fn what_another_puts_together() {
        let mut heads = Heads::default();
        assert_eq!(heads.begin(at(0), 1, 0, b"GET /", 7), Step::Waits);
        assert_eq!(heads.add(at(0), 1, 5, b"x", 8), Step::Waits);
        assert_eq!(heads.give_up(), [7, 8]);
        assert_eq!(heads.give_up(), []);
        assert_eq!(heads.add(at(0), 1, 6, b"x", 9), Step::Foreign(9));
    }

    #[test]
    fn a_head_that_begins_elsewhere_replaces_it() {
        let mut heads = Heads::default();
        assert_eq!(heads.begin(at(0), 1, 50, b"GET /", 0), Step::Waits);
        assert_eq!(heads.begin(at(0), 1, 0, &HEAD[..5], 1), Step::Waits);
        let (text, frames) = (HEAD.to_owned(), vec![1, 2]);
        assert_eq!(
            heads.add(at(0), 1, 5, &HEAD[5..], 2),
            Step::Whole {
                text,
                frames,
                is_acknowledged: false
            }
        );
    }

    /// Its client has sent it again in one frame, which needs nobody to put it together, and asks on.
    #[test]
    fn a_head_that_went_its_way_without_what_is_here() {
        let mut heads = Heads::default();
        let begin = u32::MAX - 2;
        assert_eq!(heads.begin(at(0), 1, begin, &HEAD[..5], 0), Step::Waits);
        heads.pass(&1, begin);
        heads.pass(&1, begin.wrapping_sub(30));
        assert_eq!(heads.first(&1), Some(&0));
        let next = begin.wrapping_add(HEAD.len() as u32);
        heads.pass(&1, next);
        assert_eq!(heads.add(at(0), 1, next, HEAD, 1), Step::Foreign(1));
    }

    /// Who leaves heads open is refused, and nobody else is.
    #[test]
    fn who_has_most_gives_way() {
        let mut heads = Heads::default();
        let key = |client: i32, connection: i32| client * CONNECTIONS + connection;
        assert_eq!(heads.begin(at(0), key(1, 0), 0, b"GET /", 7), Step::Waits);
        assert_eq!(heads.begin(at(0), key(2, 0), 0, b"GET /", 0), Step::Waits);
        assert_eq!(heads.add(at(1), key(2, 0), 5, b"a", 1), Step::Waits);
        for connection in 1..ROOM as i32 {
            let begun = heads.begin(at(2), key(2, connection), 0, b"GET /", connection);
            assert_eq!(begun, Step::Waits);
        }
        assert_eq!(heads.frames.sum(), ROOM);
        // Of the other client: the one that said something new longest ago, which had two frames.
        assert_eq!(heads.late(at(2)), [0]);
        assert_eq!(heads.add(at(2), key(1, 0), 5, b"a", 9), Step::Waits);
        let expected = Step::Whole {
            text: b"GET /a\n\n".to_vec(),
            frames: vec![7, 9, 8],
            is_acknowledged: false,
        };
        assert_eq!(heads.add(at(2), key(1, 0), 6, b"\n\n", 8), expected);
        assert_eq!(heads.late(at(12)).len(), ROOM - 1);
        assert!(heads.open.is_empty());
        assert_eq!(heads.frames.sum(), 0);
    }

    #[test]
    fn what_comes_in_too_many_frames() {
        let mut heads = Heads::default();
        assert_eq!(heads.begin(at(0), 1, 0, b"G", 7), Step::Waits);
        for frame in 1..MOST_FRAMES as u32 {
            assert_eq!(heads.add(at(0), 1, frame, b"G", 8), Step::Waits);
        }
        let last = heads.add(at(0), 1, MOST_FRAMES as u32, b"G", 9);
        assert_eq!(last, Step::TooLong(7));
        assert_eq!(heads.frames.sum(), 0);
    }
}
