//! The check of one local server: when to probe it, and what to conclude.

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::time::Duration;

use baton_wire::Health;

use crate::Moment;

/// How a server is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// From the start of one probe to the start of the next.
    pub interval: Duration,
    /// A probe without an answer for this long has failed.
    pub timeout: Duration,
    /// Passes in a row needed to be called passing.
    pub rise: NonZeroU32,
    /// Failures in a row needed to be called failing.
    pub fall: NonZeroU32,
}

/// The identity of one probe among all of the same check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Probe(u64);

/// What the owner of a check has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Ask the server, and give the answer to [`HealthCheck::handle_result`].
    Start(Probe),
    /// Stop asking: no answer came in time. A result that comes nevertheless is ignored.
    Abandon(Probe),
    /// The verdict has changed: tell it to the cluster.
    Verdict {
        /// The verdict from now on.
        health: Health,
        /// What the last failed probe found, if the verdict is that it fails.
        reason: Option<String>,
    },
}

/// The state of one check. Its first probe is due at once.
#[derive(Clone, Debug)]
pub struct HealthCheck {
    settings: Settings,
    verdict: Health,
    streak: Streak,
    phase: Phase,
    probes: u64,
    verdicts: VecDeque<Action>,
}

impl HealthCheck {
    /// A check that begins at `now` and knows nothing yet.
    pub fn new(now: Moment, settings: Settings) -> Self {
        Self {
            settings,
            verdict: Health::Unknown,
            streak: Streak::default(),
            phase: Phase::Waiting { due: now },
            probes: 0,
            verdicts: VecDeque::new(),
        }
    }

    /// The next thing to do at `now`, to be called until there is none: after every other call,
    /// and at [`HealthCheck::next_timeout`].
    pub fn poll(&mut self, now: Moment) -> Option<Action> {
        if let Some(verdict) = self.verdicts.pop_front() {
            return Some(verdict);
        }
        match self.phase {
            Phase::Waiting { due } if due <= now => {
                let probe = Probe(self.probes);
                self.probes += 1;
                self.phase = Phase::Asking {
                    probe,
                    started: now,
                };
                Some(Action::Start(probe))
            }
            Phase::Asking { probe, started } if started + self.settings.timeout <= now => {
                self.conclude(
                    now,
                    started,
                    Err(format!("no answer within {:?}", self.settings.timeout)),
                );
                Some(Action::Abandon(probe))
            }
            Phase::Waiting { .. } | Phase::Asking { .. } => None,
        }
    }

    /// Takes what a probe found. The result is ignored unless this probe is the one that is waited for and the
    /// result is in time.
    pub fn handle_result(&mut self, now: Moment, probe: Probe, result: Result<(), String>) {
        match self.phase {
            Phase::Asking {
                probe: asked,
                started,
            } if asked == probe && now < started + self.settings.timeout => {
                self.conclude(now, started, result);
            }
            Phase::Waiting { .. } | Phase::Asking { .. } => {}
        }
    }

    /// When [`HealthCheck::poll`] has something to do next, if nothing happens before.
    pub fn next_timeout(&self) -> Moment {
        match self.phase {
            Phase::Waiting { due } => due,
            Phase::Asking { started, .. } => started + self.settings.timeout,
        }
    }

    fn conclude(&mut self, now: Moment, started: Moment, result: Result<(), String>) {
        self.phase = Phase::Waiting {
            due: now.max(started + self.settings.interval),
        };
        self.streak.add(result.is_ok());
        let (health, needed) = match result {
            Ok(()) => (Health::Passing, self.settings.rise),
            Err(_) => (Health::Failing, self.settings.fall),
        };
        if self.streak.length >= needed.get() && self.verdict != health {
            self.verdict = health;
            self.verdicts.push_back(Action::Verdict {
                health,
                reason: result.err(),
            });
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Waiting { due: Moment },
    Asking { probe: Probe, started: Moment },
}

/// How many results of one kind came in a row.
#[derive(Clone, Copy, Debug, Default)]
struct Streak {
    passes: bool,
    length: u32,
}

impl Streak {
    fn add(&mut self, pass: bool) {
        self.length = if pass == self.passes {
            self.length.saturating_add(1)
        } else {
            1
        };
        self.passes = pass;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::after_epoch(Duration::from_millis(millis))
    }

    fn check(rise: u32, fall: u32) -> HealthCheck {
        let settings = Settings {
            interval: Duration::from_millis(1000),
            timeout: Duration::from_millis(500),
            rise: NonZeroU32::new(rise).unwrap(),
            fall: NonZeroU32::new(fall).unwrap(),
        };
        HealthCheck::new(at(0), settings)
    }

    /// Runs the probe that is due and returns what was concluded of it.
    fn round(check: &mut HealthCheck, result: Result<(), String>) -> Option<Health> {
        let now = check.next_timeout();
        let Some(Action::Start(probe)) = check.poll(now) else {
            panic!("no probe is due")
        };
        check.handle_result(now, probe, result);
        match check.poll(now) {
            None => None,
            Some(Action::Verdict { health, .. }) => Some(health),
            Some(other) => panic!("{other:?}"),
        }
    }

    fn refused() -> Result<(), String> {
        Err("connection refused".into())
    }

    #[test]
    fn rise_and_fall_are_counted_from_every_verdict() {
        let mut check = check(2, 3);
        assert_eq!(round(&mut check, Ok(())), None);
        assert_eq!(check.verdict, Health::Unknown);
        assert_eq!(round(&mut check, Ok(())), Some(Health::Passing));
        for _ in 0..2 {
            assert_eq!(round(&mut check, refused()), None);
        }
        assert_eq!(round(&mut check, Ok(())), None, "the streak is broken");
        for _ in 0..2 {
            assert_eq!(round(&mut check, refused()), None);
        }
        assert_eq!(round(&mut check, refused()), Some(Health::Failing));
        assert_eq!(round(&mut check, refused()), None, "no news");
        assert_eq!(round(&mut check, Ok(())), None);
        assert_eq!(round(&mut check, Ok(())), Some(Health::Passing));
    }

    #[test]
    fn the_first_failures_give_a_verdict_too() {
        let mut check = check(1, 2);
        assert_eq!(round(&mut check, refused()), None);
        assert_eq!(round(&mut check, refused()), Some(Health::Failing));
    }

    #[test]
    fn no_answer_in_time_is_a_failure_and_a_late_one_is_nothing() {
        let mut check = check(1, 1);
        let Some(Action::Start(probe)) = check.poll(at(0)) else {
            panic!()
        };
        assert_eq!(check.poll(at(499)), None);
        assert_eq!(check.next_timeout(), at(500));
        // The answer comes in the very millisecond of the timeout, before the poll.
        check.handle_result(at(500), probe, Ok(()));
        assert_eq!(check.poll(at(500)), Some(Action::Abandon(probe)));
        let Some(Action::Verdict {
            health: Health::Failing,
            reason,
        }) = check.poll(at(500))
        else {
            panic!()
        };
        assert_eq!(reason.as_deref(), Some("no answer within 500ms"));
        check.handle_result(at(501), probe, Ok(()));
        assert_eq!(check.verdict, Health::Failing);
        assert_eq!(check.poll(at(999)), None);
        assert!(matches!(check.poll(at(1000)), Some(Action::Start(next)) if next != probe));
    }

    #[test]
    fn probes_start_an_interval_apart_however_long_they_take() {
        let mut check = check(1, 1);
        let Some(Action::Start(probe)) = check.poll(at(0)) else {
            panic!()
        };
        check.handle_result(at(300), probe, Ok(()));
        assert_eq!(check.next_timeout(), at(1000));
        check.poll(at(300));
        // A poll that comes late starts one probe, not all that were missed.
        assert!(matches!(check.poll(at(5200)), Some(Action::Start(_))));
        assert_eq!(check.next_timeout(), at(5700));
    }

    #[test]
    fn a_timeout_longer_than_the_interval_delays_the_next_probe() {
        let mut check = check(1, 1);
        check.settings.timeout = Duration::from_millis(3000);
        let Some(Action::Start(probe)) = check.poll(at(0)) else {
            panic!()
        };
        assert_eq!(check.poll(at(2000)), None, "one at a time");
        assert_eq!(check.poll(at(3000)), Some(Action::Abandon(probe)));
        assert_eq!(check.next_timeout(), at(3000));
    }
}
