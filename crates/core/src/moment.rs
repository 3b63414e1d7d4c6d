//! Points in time, of any monotonic clock.

use std::ops::Add;
use std::time::Duration;

/// A point in time, as the time that has passed since an epoch that the caller chose. The clock never goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(Duration);

impl Moment {
    /// The point that is `elapsed` after the epoch.
    pub const fn after_epoch(elapsed: Duration) -> Self {
        Self(elapsed)
    }

    /// How long after the epoch this is.
    pub const fn since_epoch(self) -> Duration {
        self.0
    }

    /// How long after `earlier` this is; zero if it is not after it.
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    /// Saturates: what is due after the end of time is never due.
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}
