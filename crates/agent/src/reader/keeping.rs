//! What was read of a connection is kept until the connection's next socket has it. No I/O.

use std::time::Duration;

use baton_abi::Kept;
use tokio::time::Instant;

/// For so long. What is behind a request may be another one, which waits for the response to that.
const LONGEST: Duration = Duration::from_secs(3600);

/// A connection that was found nowhere for so long has ended: what brings it to another data server takes milliseconds.
const GONE_FOR: Duration = Duration::from_secs(3);

/// The frames that bring it, each with the sequence number behind it, in their order.
#[derive(Debug, Default)]
pub(super) struct Given {
    pub(super) frames: Vec<(u32, Vec<u8>)>,
    /// Sequence number behind all, a FIN included.
    pub(super) end: u32,
}

impl Given {
    /// Those that bring something that is not there yet.
    pub(super) fn missing(&self, received: u32) -> impl Iterator<Item = &[u8]> {
        let begin = (self.frames).partition_point(|(end, _)| !is_before(received, *end));
        self.frames[begin..]
            .iter()
            .map(|(_, frame)| frame.as_slice())
    }

    /// The one that tells whether all of it is there.
    pub(super) fn last(&self) -> impl Iterator<Item = &[u8]> {
        self.frames
            .last()
            .into_iter()
            .map(|(_, frame)| frame.as_slice())
    }
}

/// Whether it is to be kept still.
#[derive(Debug)]
pub(super) struct Keeping {
    end: u32,
    until: Instant,
    gone: u32,
    gone_since: Option<Instant>,
}

/// What is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It has not all come.
    Missing,
    /// It has.
    Done,
    /// Its connection is nowhere: it has ended, or was lost.
    Gone,
    /// Nobody has taken it for so long that it is given up.
    Late,
}

impl Keeping {
    /// All up to `end` is to come.
    pub(super) fn new(now: Instant, end: u32) -> Self {
        Self {
            end,
            until: now + LONGEST,
            gone: 0,
            gone_since: None,
        }
    }

    /// After each time that what is missing was sent.
    pub(super) fn look(&mut self, now: Instant, kept: Kept) -> State {
        if !is_before(kept.received, self.end) {
            return State::Done;
        }
        if kept.gone == self.gone {
            self.gone_since = None;
        } else {
            self.gone = kept.gone;
            if now - *self.gone_since.get_or_insert(now) >= GONE_FOR {
                return State::Gone;
            }
        }
        if now < self.until {
            State::Missing
        } else {
            State::Late
        }
    }
}

/// As TCP compares numbers.
fn is_before(one: u32, other: u32) -> bool {
    (one.wrapping_sub(other) as i32) < 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: u32 = 5;

    fn kept(received: u32, gone: u32) -> Kept {
        Kept { received, gone }
    }

    #[test]
    fn it_is_kept_until_all_has_come() {
        let now = Instant::now();
        let mut keeping = Keeping::new(now, END);
        for received in [u32::MAX - 9, u32::MAX, END - 1] {
            assert_eq!(keeping.look(now, kept(received, 0)), State::Missing);
        }
        assert_eq!(keeping.look(now + LONGEST, kept(4, 0)), State::Late);
        assert_eq!(keeping.look(now + LONGEST, kept(END, 0)), State::Done);
        assert_eq!(keeping.look(now, kept(END + 9, 0)), State::Done);
    }

    #[test]
    fn a_connection_has_ended_that_is_nowhere_each_time_it_is_looked_for() {
        let now = Instant::now();
        let mut keeping = Keeping::new(now, END);
        let second = |seconds| now + Duration::from_secs(seconds);
        assert_eq!(keeping.look(second(0), kept(0, 1)), State::Missing);
        // It was only on its way.
        assert_eq!(keeping.look(second(2), kept(0, 1)), State::Missing);
        for (seconds, gone) in [(4, 2), (6, 3)] {
            assert_eq!(keeping.look(second(seconds), kept(0, gone)), State::Missing);
        }
        assert_eq!(keeping.look(second(7), kept(0, 4)), State::Gone);
    }

    #[test]
    fn only_what_is_missing_is_sent() {
        let given = Given {
            frames: vec![(u32::MAX, vec![1]), (2, vec![2]), (END, vec![3])],
            end: END,
        };
        let missing = |received| {
            given
                .missing(received)
                .map(|frame| frame[0])
                .collect::<Vec<_>>()
        };
        assert_eq!(missing(u32::MAX - 3), [1, 2, 3]);
        assert_eq!(missing(u32::MAX), [2, 3]);
        assert_eq!(missing(1), [2, 3]);
        assert_eq!(missing(END), [0u8; 0]);
        assert_eq!(given.last().next(), Some(&[3][..]));
    }
}
