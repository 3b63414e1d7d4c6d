//! How long to wait before the next attempt to make a channel.

use std::time::Duration;

/// The waits between attempts to make a channel. The first wait is 25 to 50 ms; each further one is twice as long as
/// the one before, up to a limit.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    next: Duration,
}

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(2);

impl Default for Backoff {
    fn default() -> Self {
        Self { next: FIRST }
    }
}

impl Backoff {
    /// Returns how long to wait after an attempt failed or a channel was lost. `jitter`, 0.0 to 1.0, is random, so
    /// that not all nodes try at the same time.
    pub fn failed(&mut self, jitter: f64) -> Duration {
        let wait = self.next;
        self.next = (2 * wait).min(LONGEST);
        wait.mul_f64(1.0 - jitter.clamp(0.0, 1.0) / 2.0)
    }

    /// Starts over with the shortest wait, because a channel was made.
    pub fn succeeded(&mut self) {
        self.next = FIRST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_limit_and_begin_again() {
        let mut backoff = Backoff::default();
        let waits: Vec<u128> = (0..8).map(|_| backoff.failed(0.0).as_millis()).collect();
        assert_eq!(waits, [50, 100, 200, 400, 800, 1600, 2000, 2000]);
        assert_eq!(backoff.failed(1.0).as_millis(), 1000);
        backoff.succeeded();
        assert_eq!(backoff.failed(0.0).as_millis(), 50);
    }
}
