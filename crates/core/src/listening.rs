//! The clock by which the silence of others is measured: it counts only the time in which this daemon listens. A
//! daemon that did not run for a while, because its machine was busy or asleep, has heard nobody, and that says
//! nothing about the others: what they sent meanwhile is still to be read. So such a pause does not count.

use std::time::Duration;

use crate::Moment;

/// A clock that stands still while nobody looks at it.
#[derive(Clone, Copy, Debug)]
pub struct ListeningClock {
    /// The longest time between two looks of a daemon that runs.
    usual: Duration,
    looked: Moment,
    missed: Duration,
}

impl ListeningClock {
    /// Makes the clock of a daemon that begins now and looks at it at least once every `usual` while it runs.
    pub fn new(now: Moment, usual: Duration) -> Self {
        Self {
            usual,
            looked: now,
            missed: Duration::ZERO,
        }
    }

    /// From now on the daemon looks at least this often.
    pub fn retime(&mut self, usual: Duration) {
        self.usual = usual;
    }

    /// The time by this clock when it is `now` by one that never stands still.
    pub fn look(&mut self, now: Moment) -> Moment {
        self.missed += now.since(self.looked).saturating_sub(self.usual);
        self.looked = self.looked.max(now);
        Moment::after_epoch(now.since_epoch().saturating_sub(self.missed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment::after_epoch(Duration::from_millis(ms))
    }

    #[test]
    fn it_stands_still_in_a_pause_and_goes_on_from_there() {
        let mut clock = ListeningClock::new(at(0), Duration::from_millis(400));
        let looks = [
            (200, 200),
            (600, 600),
            (60_600, 1000),
            (60_600, 1000),
            (60_900, 1300),
        ];
        for (now, shown) in looks {
            assert_eq!(clock.look(at(now)), at(shown), "at {now}");
        }
    }
}
