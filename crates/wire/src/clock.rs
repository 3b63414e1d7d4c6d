//! Wall clocks of nodes, as messages carry them.

use std::time::{Duration, SystemTime};

/// A node's wall clock: nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Clock(u64);

impl Clock {
    /// The clock that shows `nanos` nanoseconds since 1970.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since 1970.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// What the clock showed `ago` earlier; 1970 if that would be before 1970.
    pub fn before(self, ago: Duration) -> Self {
        let ago = u64::try_from(ago.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_sub(ago))
    }

    /// How far apart two clocks are, whichever is ahead.
    pub const fn distance(self, other: Self) -> Duration {
        Duration::from_nanos(self.0.abs_diff(other.0))
    }
}

impl From<SystemTime> for Clock {
    /// Converts a system time. A time before 1970 becomes 1970 and one after 2554 becomes 2554. In both cases the
    /// node's messages are stale to every node whose clock is right.
    fn from(time: SystemTime) -> Self {
        let since = time
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        Self(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// When a message came, by the clock of the node that reads it. The message may have waited to be read, and nobody
/// knows how long, so this is a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The earliest time at which it can have come.
    earliest: Clock,
    latest: Clock,
}

impl Arrival {
    /// The arrival of a message that is read `now` and has waited for at most `waited`.
    pub fn within(waited: Duration, now: Clock) -> Self {
        Self {
            earliest: now.before(waited),
            latest: now,
        }
    }

    /// The time nearest to what the sender's clock showed, among all times at which the message may have come.
    pub fn nearest(self, theirs: Clock) -> Clock {
        theirs.clamp(self.earliest, self.latest)
    }
}

impl From<Clock> for Arrival {
    fn from(now: Clock) -> Self {
        Self {
            earliest: now,
            latest: now,
        }
    }
}

/// One run of a daemon, named by the clock at which it started. A later run compares greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(Clock);

impl Incarnation {
    /// The run that started at `start`.
    pub const fn started_at(start: Clock) -> Self {
        Self(start)
    }

    /// When the run started.
    pub const fn start(self) -> Clock {
        self.0
    }
}
