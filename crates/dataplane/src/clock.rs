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
    /// The one that is now, as the programs count.
    pub fn now() -> Self {
        // The lower bits, as in the programs: ages are differences.
        Self((coarse_clock() >> TICK_SHIFT) as u32)
    }
}

/// The tick that it was so long ago.
pub fn tick_ago(ago: Duration) -> Tick {
    let ago = u64::try_from(ago.as_nanos()).unwrap_or(u64::MAX);
    // Ticks are counted modulo 2^32.
    Tick((coarse_clock().saturating_sub(ago) >> TICK_SHIFT) as u32)
}

impl From<Duration> for Tick {
    /// Rounds up, so that a short time is not none.
    fn from(duration: Duration) -> Self {
        let ticks = duration.as_nanos().div_ceil(1 << TICK_SHIFT);
        Tick(u32::try_from(ticks).unwrap_or(u32::MAX))
    }
}
