//! The queue of runs, and which of them may run at the same time: a scenario never runs beside itself, because its lab
//! has one name, and a scenario that fills the machine runs beside no other.

use std::cmp::Reverse;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::run::run;
use crate::scenario::Scenario;

/// The outcome of one run.
pub struct Outcome {
    /// How long the run took, from lab up to lab down.
    pub took: Duration,
    /// What was not as expected; `None` if the run succeeded.
    pub error: Option<String>,
}

/// The runs that are left, shared by the threads that run them.
pub struct Queue<'a> {
    scenarios: &'a [Scenario],
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Indices of scenarios that are still to run, the next one first.
    waiting: Vec<usize>,
    running: Vec<usize>,
}

impl<'a> Queue<'a> {
    /// Queues each scenario `repeat` times: all of them once, then all once more. Large labs come first, so that none
    /// of them is the last that everybody waits for, and scenarios that fill the machine come last.
    pub fn new(scenarios: &'a [Scenario], repeat: usize) -> Queue<'a> {
        let mut order: Vec<usize> = (0..scenarios.len()).collect();
        order.sort_by_key(|&index| Reverse(scenarios[index].lab.hosts().len()));
        let (alone, shared): (Vec<usize>, Vec<usize>) =
            (order.into_iter()).partition(|&index| scenarios[index].alone);
        let waiting = [shared.repeat(repeat), alone.repeat(repeat)].concat();
        Queue {
            scenarios,
            state: Mutex::new(State {
                waiting,
                running: Vec::new(),
            }),
            changed: Condvar::new(),
        }
    }

    /// Takes runs from the queue and runs them one after the other until none is left. Several threads may call this.
    pub fn work(&self, note: impl Fn(&Scenario, Outcome)) {
        while let Some(index) = self.begin() {
            let begin = Instant::now();
            let scenario = &self.scenarios[index];
            // A step that panics fails its scenario, not the others.
            let outcome = catch_unwind(AssertUnwindSafe(|| run(scenario)));
            let error = match outcome {
                Ok(outcome) => outcome.err().map(|error| format!("{error:#}")),
                Err(_) => Some("a step panicked: see above".to_owned()),
            };
            let took = begin.elapsed();
            note(scenario, Outcome { took, error });
            self.lock().running.retain(|one| *one != index);
            self.changed.notify_all();
        }
    }

    /// Waits for the next run that may begin. Returns `None` if nothing is left.
    fn begin(&self) -> Option<usize> {
        let mut state = self.lock();
        loop {
            if state.waiting.is_empty() {
                return None;
            }
            if let Some(at) = self.next(&state) {
                let index = state.waiting.remove(at);
                state.running.push(index);
                return Some(index);
            }
            state = (self.changed.wait(state)).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn next(&self, state: &State) -> Option<usize> {
        let is_alone = |index: &usize| self.scenarios[*index].alone;
        if state.running.iter().any(is_alone) {
            return None;
        }
        let may_begin = |index: &usize| {
            !state.running.contains(index) && (!is_alone(index) || state.running.is_empty())
        };
        state.waiting.iter().position(may_begin)
    }

    /// Locks the state. No thread panics while it holds the lock.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
