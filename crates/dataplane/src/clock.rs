//! The clocks that programs and daemon share.

use std::time::Duration;

use baton_abi::TICK_SHIFT;
use nix::time::{ClockId, clock_gettime};

/// Wall clock minus monotonic clock, nanoseconds. The programs read the monotonic clock; cookies and
/// LCCP need one that all nodes share. Written to the settings again and again, because NTP moves it.
pub fn wall_clock_offset() -> i64 {
    nanoseconds(ClockId::CLOCK_REALTIME) - nanoseconds(ClockId::CLOCK_MONOTONIC)
}

/// The monotonic clock as of the last timer tick, by which the programs tell how old things are.
pub(crate) fn coarse_clock() -> u64 {
    // Nanoseconds since the machine's start.
    u64::try_from(nanoseconds(ClockId::CLOCK_MONOTONIC_COARSE)).unwrap_or_default()
}

fn nanoseconds(clock: ClockId) -> i64 {
    // Neither clock can be missing on a kernel that runs BPF; zero would only make LCCP stale.
    clock_gettime(clock).map_or(0, |time| time.tv_sec() * 1_000_000_000 + time.tv_nsec())
}

/// The unit in which TCB entries age: 2^30 ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick(pub u32);

impl From<Duration> for Tick {
    /// Rounds up, so that a short time is not none.
    fn from(duration: Duration) -> Self {
        let ticks = duration.as_nanos().div_ceil(1 << TICK_SHIFT);
        Tick(u32::try_from(ticks).unwrap_or(u32::MAX))
    }
}
