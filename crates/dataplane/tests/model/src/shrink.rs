//! Makes a failing sequence as short as it still fails.

use crate::step::Trial;

/// Leaves out the steps and requests that the failure does not need.
pub fn shrink(trial: &Trial, fails: &mut dyn FnMut(&Trial) -> bool) -> Trial {
    let mut best = trial.clone();
    let mut part = best.steps.len();
    while part > 0 {
        let mut at = 0;
        while at < best.steps.len() {
            let mut less = best.clone();
            less.steps.drain(at..(at + part).min(less.steps.len()));
            if fails(&less) {
                best = less;
            } else {
                at += part;
            }
        }
        part /= 2;
    }
    while best.requests.len() > 1 {
        let mut less = best.clone();
        less.requests.pop();
        if !fails(&less) {
            break;
        }
        best = less;
    }
    best
}
