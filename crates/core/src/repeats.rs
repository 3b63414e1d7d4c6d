//! Things that are done several times, in case what they did got lost: after growing pauses.

use std::time::Duration;

use crate::Moment;

/// From one time to the next. What waits for a response before it may have to wait for long.
const PAUSES: [Duration; 7] = [
    Duration::from_millis(300),
    Duration::from_millis(700),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
    Duration::from_secs(16),
];
/// Times for what somebody else does as well, if need be.
const FEW: usize = 3;
/// At a time; of more the oldest are forgotten.
const MOST: usize = 256;

/// Things of this kind, each with when it is due.
#[derive(Debug)]
pub struct Repeats<T> {
    waiting: Vec<Repeat<T>>,
}

#[derive(Debug)]
struct Repeat<T> {
    due: Moment,
    done: usize,
    times: usize,
    thing: T,
}

impl<T> Default for Repeats<T> {
    fn default() -> Self {
        Self {
            waiting: Vec::new(),
        }
    }
}

impl<T: Clone> Repeats<T> {
    /// This was done now for the first time. Unless `is_vital`, a few more times are enough.
    pub fn add(&mut self, now: Moment, thing: T, is_vital: bool) {
        if self.waiting.len() == MOST {
            self.waiting.remove(0);
        }
        self.waiting.push(Repeat {
            due: now + PAUSES[0],
            done: 0,
            times: if is_vital { PAUSES.len() } else { FEW },
            thing,
        });
    }

    /// What is to be done once more.
    pub fn due(&mut self, now: Moment) -> Vec<T> {
        let mut due = Vec::new();
        self.waiting.retain_mut(|repeat| {
            if repeat.due > now {
                return true;
            }
            due.push(repeat.thing.clone());
            repeat.done += 1;
            let pause = PAUSES[..repeat.times].get(repeat.done);
            repeat.due = now + pause.copied().unwrap_or_default();
            pause.is_some()
        });
        due
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
        let mut repeats = Repeats::default();
        repeats.add(at(0), 'a', true);
        assert!(repeats.due(at(299)).is_empty());
        assert_eq!(repeats.due(at(300)), ['a']);
        repeats.add(at(500), 'b', true);
        assert_eq!(repeats.due(at(1000)), ['a', 'b']);
        let times = (1001..100_000).filter(|time| repeats.due(at(*time)).contains(&'a'));
        assert_eq!(times.count(), PAUSES.len() - 2);
        assert!(repeats.waiting.is_empty());
    }

    #[test]
    fn a_few_times() {
        let mut repeats = Repeats::default();
        repeats.add(at(0), 'a', false);
        let times = (0..100_000).filter(|time| !repeats.due(at(*time)).is_empty());
        assert_eq!(times.count(), FEW);
    }

    #[test]
    fn the_oldest_gives_way() {
        let mut repeats = Repeats::default();
        for thing in 0..=MOST {
            repeats.add(at(0), thing, false);
        }
        assert_eq!(repeats.due(at(300))[0], 1);
        assert_eq!(repeats.waiting.len(), MOST);
    }
}
