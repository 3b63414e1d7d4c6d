//! Errors that stop nothing, and that clients can cause as often as they like. They are logged at most once a second.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use anyhow::Result;
use tracing::warn;

const PAUSE: Duration = Duration::from_secs(1);

/// Errors of one kind.
pub struct Complaints {
    /// What such an error means: the beginning of each log line.
    what: &'static str,
    said: Cell<Option<Instant>>,
    /// How many errors were not logged since the last log line.
    unsaid: Cell<u64>,
}

impl Complaints {
    /// Begins without errors. `what` says what such an error means.
    pub fn about(what: &'static str) -> Self {
        Self {
            what,
            said: Cell::new(None),
            unsaid: Cell::new(0),
        }
    }

    /// Logs an error, unless one was logged within the last second.
    pub fn hear(&self, result: Result<()>) {
        let Err(error) = result else {
            return;
        };
        match self.before_this(Instant::now()) {
            Some(0) => warn!("{}: {error:#}", self.what),
            Some(unsaid) => warn!("{}, {unsaid} times before this: {error:#}", self.what),
            None => {}
        }
    }

    /// How many errors were not logged before this one. `None` if this one is not to be logged either.
    fn before_this(&self, now: Instant) -> Option<u64> {
        if (self.said.get()).is_some_and(|said| now.saturating_duration_since(said) < PAUSE) {
            self.unsaid.set(self.unsaid.get() + 1);
            return None;
        }
        self.said.set(Some(now));
        Some(self.unsaid.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_a_second() {
        let complaints = Complaints::about("nothing");
        let begin = Instant::now();
        let after = |ms| complaints.before_this(begin + Duration::from_millis(ms));
        assert_eq!(
            [0, 1, 999, 1000, 1001].map(after),
            [Some(0), None, None, Some(2), None]
        );
        assert_eq!(after(9000), Some(1));
        assert_eq!(after(20_000), Some(0));
    }
}
