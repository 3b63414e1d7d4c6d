//! How far the clocks of other nodes are from this one's.
//!
//! A stale message alone does not prove that its sender's clock is wrong, because recorded messages can be played back.
//! So a node counts as having a right clock for a while after a message of it was taken, whatever else arrives in its
//! name.

use std::{collections::HashMap, net::Ipv4Addr, time::Duration};

use baton_core::Moment;
use baton_dataplane::StaleSender;
use baton_wire::Clock;

/// How long a reading counts. An older one says nothing, because the clock may have been set since.
const FORGOTTEN: Duration = Duration::from_secs(10);

/// The last readings of each node's clock, by the node's address.
#[derive(Default)]
pub struct Clocks {
    taken: HashMap<Ipv4Addr, Reading>,
    refused: HashMap<Ipv4Addr, Reading>,
}

/// One reading of another node's clock. The skew is this node's clock minus the other's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reading {
    skew_ms: i64,
    theirs: Clock,
    at: Moment,
}

/// How far a node's clock is off, as it was heard last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skew {
    /// This node's clock minus the other's, plus the time that the message travelled. It is positive if the other clock
    /// is behind.
    pub ms: i64,
    /// Whether the clock is so far off that the node's messages are refused.
    pub refused: bool,
}

impl Clocks {
    /// Notes a message that was taken.
    pub fn note_taken(&mut self, now: Moment, from: Ipv4Addr, theirs: Clock, ours: Clock) {
        let skew_ms = skew_ms(i128::from(ours.as_nanos()) - i128::from(theirs.as_nanos()));
        let reading = Reading {
            skew_ms,
            theirs,
            at: now,
        };
        self.taken.insert(from, reading);
        self.refused.remove(&from);
    }

    /// Notes a message under the right key that came `ago` before `now` and was refused because of its clock. Returns
    /// true if the message is a sign of life, which it is if that clock goes on. If a message was taken since, the
    /// refused one says nothing: it was only late, like messages that waited for a link that was down. One message that
    /// is played back again and again is no sign of life. Whoever has recorded many messages and plays them back in
    /// their order can make a dead host pass for a living one, but only for as long as that takes.
    pub fn note_refused(
        &mut self,
        now: Moment,
        from: Ipv4Addr,
        theirs: Clock,
        ours: Clock,
        ago: Duration,
    ) -> bool {
        if (self.taken.get(&from)).is_some_and(|taken| now < taken.at + ago) {
            return false;
        }
        let skew_ms = skew_ms(i128::from(ours.as_nanos()) - i128::from(theirs.as_nanos()));
        // Anybody can forge a source address, so there are no more entries than a cluster may have nodes.
        if self.refused.len() < baton_abi::MAX_PEERS as usize || self.refused.contains_key(&from) {
            let reading = Reading {
                skew_ms,
                theirs,
                at: now,
            };
            let before = self.refused.insert(from, reading);
            return before.is_some_and(|of| now < of.at + FORGOTTEN && of.theirs < theirs);
        }
        false
    }

    /// How far a node's clock is off, if that is known. `by_program` is what the programs have refused in its name.
    pub fn of(
        &self,
        now: Moment,
        node: Ipv4Addr,
        by_program: Option<&StaleSender>,
    ) -> Option<Skew> {
        let fresh = |reading: &&Reading| now < reading.at + FORGOTTEN;
        if let Some(taken) = self.taken.get(&node).filter(fresh) {
            let ms = taken.skew_ms;
            return Some(Skew { ms, refused: false });
        }
        let heard = self.refused.get(&node).filter(fresh);
        let by_program = by_program.filter(|sender| sender.age < FORGOTTEN);
        let ms = heard
            .map(|reading| reading.skew_ms)
            .or(by_program.map(|sender| skew_ms(-i128::from(sender.ahead_ns))))?;
        Some(Skew { ms, refused: true })
    }
}

fn skew_ms(nanoseconds: i128) -> i64 {
    let ms = nanoseconds / 1_000_000;
    i64::try_from(ms).unwrap_or(if ms < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;
    const NODE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 11);

    fn at(seconds: u64) -> Moment {
        Moment::after_epoch(Duration::from_secs(seconds))
    }

    fn clock(seconds: u64) -> Clock {
        Clock::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn who_is_refused_is_known_by_how_much() {
        let mut clocks = Clocks::default();
        assert_eq!(clocks.of(at(0), NODE, None), None);
        clocks.note_refused(at(0), NODE, clock(1000), clock(1037), NOW);
        let behind = Skew {
            ms: 37_000,
            refused: true,
        };
        assert_eq!(clocks.of(at(9), NODE, None), Some(behind));
        assert_eq!(clocks.of(at(10), NODE, None), None, "that was long ago");
        clocks.note_refused(at(20), NODE, clock(1037), clock(1000), NOW);
        assert_eq!(
            clocks.of(at(20), NODE, None).map(|skew| skew.ms),
            Some(-37_000)
        );
    }

    /// A replay in the name of a node that is heard does not count.
    #[test]
    fn who_is_heard_is_right() {
        let mut clocks = Clocks::default();
        clocks.note_taken(at(0), NODE, clock(1000), clock(1001));
        clocks.note_refused(at(1), NODE, clock(1), clock(1001), NOW);
        let program = StaleSender {
            ahead_ns: -900_000_000_000,
            age: Duration::ZERO,
        };
        let right = Skew {
            ms: 1000,
            refused: false,
        };
        assert_eq!(clocks.of(at(9), NODE, Some(&program)), Some(right));
        let refused = clocks
            .of(at(10), NODE, Some(&program))
            .expect("still heard");
        assert!(refused.refused);
        clocks.note_taken(at(10), NODE, clock(1001), clock(1001));
        assert!(!clocks.of(at(10), NODE, None).expect("heard").refused);
    }

    #[test]
    fn a_wrong_clock_that_goes_on_is_a_sign_of_life_and_a_replay_is_none() {
        let mut clocks = Clocks::default();
        assert!(!clocks.note_refused(at(0), NODE, clock(100), clock(1000), NOW));
        assert!(!clocks.note_refused(at(1), NODE, clock(100), clock(1001), NOW));
        assert!(clocks.note_refused(at(2), NODE, clock(102), clock(1002), NOW));
        assert!(!clocks.note_refused(at(3), NODE, clock(101), clock(1003), NOW));
        assert!(
            !clocks.note_refused(at(13), NODE, clock(113), clock(1013), NOW),
            "long after"
        );
        assert!(clocks.note_refused(at(14), NODE, clock(114), clock(1014), NOW));
    }

    /// Messages that waited for a link that was down come before new ones, and the daemon learns later that the
    /// programs refused them.
    #[test]
    fn what_was_refused_before_something_was_taken_says_nothing() {
        let mut clocks = Clocks::default();
        clocks.note_refused(at(10), NODE, clock(100), clock(130), NOW);
        clocks.note_taken(at(20), NODE, clock(140), clock(140));
        for (now, theirs) in [(21, 101), (22, 102), (23, 103)] {
            let ago = Duration::from_secs(now - 19);
            assert!(!clocks.note_refused(at(now), NODE, clock(theirs), clock(139), ago));
        }
        let ago = Duration::from_secs(1);
        assert!(!clocks.note_refused(at(22), NODE, clock(104), clock(141), ago));
        assert!(clocks.note_refused(at(23), NODE, clock(105), clock(142), ago));
    }

    /// The daemon of this node says nothing, while its programs still send.
    #[test]
    fn the_programs_know_as_well() {
        let clocks = Clocks::default();
        let mut program = StaleSender {
            ahead_ns: -37_000_000_000,
            age: Duration::from_secs(9),
        };
        let behind = Skew {
            ms: 37_000,
            refused: true,
        };
        assert_eq!(clocks.of(at(0), NODE, Some(&program)), Some(behind));
        program.age = FORGOTTEN;
        assert_eq!(clocks.of(at(0), NODE, Some(&program)), None);
    }

    #[test]
    fn any_clock() {
        let mut clocks = Clocks::default();
        clocks.note_refused(at(0), NODE, Clock::from_nanos(u64::MAX), clock(0), NOW);
        assert!(clocks.of(at(0), NODE, None).expect("heard").ms < -18_000_000_000_000);
    }

    #[test]
    fn a_forger_of_addresses_fills_no_memory() {
        let mut clocks = Clocks::default();
        for number in 0..10_000 {
            let from = Ipv4Addr::from_bits(number);
            clocks.note_refused(at(0), from, clock(0), clock(1000), NOW);
        }
        assert_eq!(clocks.refused.len(), baton_abi::MAX_PEERS as usize);
    }
}
