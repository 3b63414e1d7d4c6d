//! When something is repeated in case its effect was lost: after growing pauses, and not for ever.

use std::time::Duration;

use crate::Moment;

/// The pauses from one time to the next. Something that waits for a response before it may have to wait for
/// long.
const PAUSES: [Duration; 7] = [
    Duration::from_millis(300),
    Duration::from_millis(700),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
    Duration::from_secs(16),
];

/// When one thing is to be repeated.
#[derive(Debug)]
pub struct Repeats {
    /// When it is next due; `None` if never again.
    due: Option<Moment>,
    done: usize,
}

impl Repeats {
    /// The repetitions of something that was done now for the first time.
    pub fn from(now: Moment) -> Self {
        Self {
            due: Some(now + PAUSES[0]),
            done: 0,
        }
    }

    /// No repetitions, for something that is done only once.
    pub const fn never() -> Self {
        Self { due: None, done: 0 }
    }

    /// Whether the thing is to be done now. If so, the next time is set.
    pub fn is_due(&mut self, now: Moment) -> bool {
        if self.due.is_none_or(|due| due > now) {
            return false;
        }
        self.done += 1;
        self.due = PAUSES.get(self.done).map(|pause| now + *pause);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Moment {
        Moment::after_epoch(Duration::from_millis(milliseconds))
    }

    #[test]
    fn again_and_again_but_not_for_ever() {
        let mut repeats = Repeats::from(at(0));
        assert!(!repeats.is_due(at(299)));
        assert!(repeats.is_due(at(300)));
        assert!(!repeats.is_due(at(300)));
        // This call is late, and the next pause begins only now.
        assert!(repeats.is_due(at(1200)));
        assert!(!repeats.is_due(at(2199)));
        let times = (2200..100_000).filter(|time| repeats.is_due(at(*time)));
        assert_eq!(times.count(), PAUSES.len() - 2);
    }

    #[test]
    fn never() {
        let mut repeats = Repeats::never();
        assert!(!repeats.is_due(at(100_000)));
    }
}
