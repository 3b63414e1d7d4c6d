//! A sequence that fails, made as short as it still fails.

use crate::{
    cs::ConnectionServer,
    step::Trial,
    world::{Failure, Tells, run},
};

/// So often a sequence is run in which two things happen at the same time.
const RACES: usize = 300;

/// Fails with the shortest sequence that can be found, step by step.
pub fn explain(cs: &ConnectionServer, seed: u64, trial: Trial, failure: Failure) -> ! {
    let (shortest, of_shortest) = shrink(cs, trial);
    let failure = of_shortest.unwrap_or(failure);
    let mut said = String::new();
    for (connection, script) in shortest.scripts.iter().enumerate() {
        said += &format!("connection {connection} asks, at these bytes of its stream:\n");
        for request in &script.requests {
            let text = script.text[request.begin..request.end].escape_ascii();
            let (begin, end, pool) = (request.begin, request.end, request.pool);
            said += &format!("  {begin:4}..{end:<4} {pool:?}: {text}\n");
        }
    }
    panic!(
        "BATON_MODEL_SEED={seed}: {}\n{said}{}",
        failure.what, failure.trace
    );
}

/// The shortest sequence found, and its failure with all that happened.
fn shrink(cs: &ConnectionServer, mut trial: Trial) -> (Trial, Option<Failure>) {
    // What depends on who is first does not fail each time.
    let times = if trial.habits.races { RACES } else { 1 };
    let fails = |trial: &Trial| (0..times).any(|_| run(cs, trial, Tells::Nothing).is_err());
    let mut width = trial.steps.len() / 2;
    while width > 0 {
        let mut at = 0;
        while at < trial.steps.len() {
            let mut shorter = trial.clone();
            let end = (at + width).min(shorter.steps.len());
            shorter.steps.drain(at..end);
            if fails(&shorter) {
                trial = shorter;
            } else {
                at += width;
            }
        }
        width /= 2;
    }
    // A network in order is easier to read.
    for at in 0..trial.steps.len() {
        if !trial.steps[at].settles {
            let mut calmer = trial.clone();
            calmer.steps[at].settles = true;
            if fails(&calmer) {
                trial = calmer;
            }
        }
    }
    let failure = (0..times).find_map(|_| run(cs, &trial, Tells::Counters).err());
    (trial, failure)
}
