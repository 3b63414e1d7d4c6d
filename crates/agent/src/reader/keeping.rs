//! Keeps what was read of a connection until the connection's next socket has it. No I/O.

use std::time::Duration;

use baton_abi::Kept;
use tokio::time::Instant;

/// What was read is kept at most this long. What is behind a request may be another request, which waits for the
/// response to the first one.
const LONGEST: Duration = Duration::from_secs(3600);

/// A connection that was found nowhere for this long has ended. It takes only milliseconds to bring a connection to
/// another data server.
const GONE_FOR: Duration = Duration::from_secs(3);

/// The client's frames that bring what is kept to the next socket, in their order. Each stands with the sequence number
/// behind its data.
#[derive(Debug, Default)]
pub(super) struct Given {
    pub(super) frames: Vec<(u32, Vec<u8>)>,
    /// Sequence number behind all data, and behind a FIN if there is one.
    pub(super) end: u32,
}

impl Given {
    /// Returns the frames with data that the next socket lacks. That socket has all data before `received`.
    pub(super) fn missing(&self, received: u32) -> impl Iterator<Item = &[u8]> {
        let begin = (self.frames).partition_point(|(end, _)| !is_before(received, *end));
        self.frames[begin..]
            .iter()
            .map(|(_, frame)| frame.as_slice())
    }

    /// Returns the last frame, which shows whether the next socket has all data.
    pub(super) fn last(&self) -> impl Iterator<Item = &[u8]> {
        self.frames
            .last()
            .into_iter()
            .map(|(_, frame)| frame.as_slice())
    }
}

/// Decides whether the data of a connection must still be kept.
#[derive(Debug)]
pub(super) struct Keeping {
    end: u32,
    until: Instant,
    gone: u32,
    gone_since: Option<Instant>,
}

/// What is known of the data that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The next socket does not have all data.
    Missing,
    /// The next socket has all data.
    Done,
    /// The connection was found nowhere: it has ended, or was lost.
    Gone,
    /// No socket has taken all data for so long that the agent gives up.
    Late,
}

impl Keeping {
    /// Begins to keep data. The next socket has all of it when it has everything before `end`.
    pub(super) fn new(now: Instant, end: u32) -> Self {
        Self {
            end,
            until: now + LONGEST,
            gone: 0,
            gone_since: None,
        }
    }

    /// Says what is known of the data by now. It must be called each time after the missing frames were sent.
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

/// Whether `one` comes before `other`, as TCP compares sequence numbers.
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
        // `gone` has not grown: the connection was only on its way.
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
