//! The clocks that programs and daemon share.

use std::time::Duration;

use baton_abi::{SENT_SHIFT, TICK_SHIFT};
use nix::time::{ClockId, clock_gettime};

/// Wall clock minus monotonic clock, nanoseconds. The programs read the monotonic clock; cookies and
/// LCCP need one that all nodes share. Written to the settings again and again, because NTP moves it.
pub fn wall_clock_offset() -> i64 {
    offset_of(|| {
        let before = nanoseconds(ClockId::CLOCK_MONOTONIC);
        let wall = nanoseconds(ClockId::CLOCK_REALTIME);
        (before, wall, nanoseconds(ClockId::CLOCK_MONOTONIC))
    })
}

/// Reads the wall clock several times, each time between two readings of the monotonic clock, and goes by the reading
/// that took least time. On a busy machine others may run in the middle of a reading, for as long as a second.
fn offset_of(mut read: impl FnMut() -> (i64, i64, i64)) -> i64 {
    const READINGS: usize = 3;
    (0..READINGS)
        .map(|_| read())
        .min_by_key(|(before, _, after)| after - before)
        .map_or(0, |(before, wall, after)| wall - (before + after) / 2)
}

/// The monotonic clock as of the last timer tick, by which the programs tell how old things are.
pub(crate) fn coarse_clock() -> u64 {
    // Nanoseconds since the machine's start.
    u64::try_from(nanoseconds(ClockId::CLOCK_MONOTONIC_COARSE)).unwrap_or_default()
}

/// How long ago a program noted this time.
pub(crate) fn age(noted_ns: u64) -> Duration {
    let now = u64::try_from(nanoseconds(ClockId::CLOCK_MONOTONIC)).unwrap_or_default();
    Duration::from_nanos(now.saturating_sub(noted_ns))
}

/// How long ago something was sent, from the time that the programs note for it.
pub(crate) fn age_of_sent(sent: u32) -> Duration {
    // The lower bits, as in the programs: ages are differences.
    let now = (coarse_clock() >> SENT_SHIFT) as u32;
    Duration::from_nanos(u64::from(now.wrapping_sub(sent)) << SENT_SHIFT)
}

pub(crate) fn coarse_after(time: Duration) -> u64 {
    let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    coarse_clock().saturating_add(time)
}

fn nanoseconds(clock: ClockId) -> i64 {
    // Neither clock can be missing on a kernel that runs BPF; zero would only make LCCP stale.
    clock_gettime(clock).map_or(0, |time| time.tv_sec() * 1_000_000_000 + time.tv_nsec())
}

/// The unit in which TCB entries age: 2^30 ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick(pub u32);

impl Tick {
    /// The current tick, as the programs count.
    pub fn now() -> Self {
        // The lower bits, as in the programs: ages are differences.
        Self((coarse_clock() >> TICK_SHIFT) as u32)
    }
}

impl From<Duration> for Tick {
    /// Rounds up, so that a short time does not become zero.
    fn from(duration: Duration) -> Self {
        let ticks = duration.as_nanos().div_ceil(1 << TICK_SHIFT);
        Tick(u32::try_from(ticks).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_that_was_interrupted_does_not_count() {
        let mut readings = [
            (1_000, 5_000_900, 901_000),
            (902_000, 5_901_010, 902_020),
            (903_000, 5_902_500, 1_803_000),
        ]
        .into_iter();
        let offset = offset_of(|| readings.next().expect("three are enough"));
        assert_eq!(offset, 4_999_000);
    }
}
