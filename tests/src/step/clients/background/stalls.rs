//! How long clients waited, by what was being done to the cluster meanwhile.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A phase: what is being done, by the scenario's name for it, and the number of the phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Phase {
    number: usize,
    name: Arc<str>,
}

/// The current phase, which all clients read.
#[derive(Debug, Default)]
pub struct Phases(Mutex<Phase>);

impl Phases {
    /// Begins a new phase, even if it has the same name as the one before.
    pub fn begin(&self, name: &str) {
        let mut phase = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        phase.number += 1;
        phase.name = name.into();
    }

    /// The current phase.
    pub fn now(&self) -> Phase {
        let phase = self.0.lock();
        phase.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The longest wait of one client in each phase. A wait belongs to the phase in which it ends, and may have begun
/// before that phase.
#[derive(Debug, Default)]
pub struct Waits(BTreeMap<Phase, Duration>);

impl Waits {
    pub fn add(&mut self, phase: Phase, wait: Duration) {
        let longest = self.0.entry(phase).or_default();
        *longest = wait.max(*longest);
    }
}

/// The waits of all clients, by the phase's name and the kind of client.
#[derive(Debug, Default)]
pub struct Stalls(BTreeMap<(Arc<str>, String), Vec<Duration>>);

impl Stalls {
    /// Adds the waits of one client.
    pub fn add(&mut self, kind: &str, waits: Waits) {
        for (phase, wait) in waits.0 {
            let waits = self.0.entry((phase.name, kind.to_owned())).or_default();
            waits.push(wait);
        }
    }
}

impl fmt::Display for Stalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ((name, kind), waits) in &self.0 {
            let mut waits = waits.clone();
            waits.sort_unstable();
            let (longest, p99) = (waits.last().copied(), percentile(&waits, 99));
            write!(
                f,
                "\n  stalls of a {kind}{}{name}: longest {:.1?}, p99 {:.1?} (of {})",
                if name.is_empty() { "" } else { ", " },
                longest.unwrap_or_default(),
                p99.unwrap_or_default(),
                waits.len(),
            )?;
        }
        Ok(())
    }
}

/// The least of these sorted durations that at least `of_hundred` percent of them do not exceed.
fn percentile(sorted: &[Duration], of_hundred: usize) -> Option<Duration> {
    let rank = (sorted.len() * of_hundred).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_99th_percentile_is_a_stall_that_was_seen() {
        let stalls: Vec<Duration> = (1..=200).map(Duration::from_millis).collect();
        assert_eq!(percentile(&stalls, 99), Some(198 * MS));
        assert_eq!(percentile(&stalls[..1], 99), Some(MS));
        assert_eq!(percentile(&[], 99), None);
    }

    #[test]
    fn each_phase_has_its_longest() {
        let phases = Phases::default();
        let (mut stalls, mut waits) = (Stalls::default(), Waits::default());
        waits.add(phases.now(), MS);
        for name in ["crash", "crash", "planned"] {
            phases.begin(name);
            waits.add(phases.now(), 2 * MS);
            waits.add(phases.now(), MS);
        }
        stalls.add("download", waits);
        let mut waits = Waits::default();
        waits.add(phases.now(), 3 * MS);
        stalls.add("connection", waits);
        let said = stalls.to_string();
        let expected = "\n  stalls of a download: longest 1.0ms, p99 1.0ms (of 1)\
            \n  stalls of a download, crash: longest 2.0ms, p99 2.0ms (of 2)\
            \n  stalls of a connection, planned: longest 3.0ms, p99 3.0ms (of 1)\
            \n  stalls of a download, planned: longest 2.0ms, p99 2.0ms (of 1)";
        assert_eq!(said, expected);
    }
}
