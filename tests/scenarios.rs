//! Every scenario in `scenarios/` as a test, one at a time: labs share the machine.
//!
//! With `BATON_TEST_AGAIN=N`, N of those that fail are run a second time, and named as unsteady if that one
//! passes: servers, clients and a dozen network namespaces wait for each other here, on a machine that may
//! leave any of them waiting. What is wrong fails twice.

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use anyhow::{Result, anyhow};
use baton_tests::{Scenario, run, why_not};
use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let scenarios = match Scenario::all() {
        Ok(scenarios) => scenarios,
        Err(error) => {
            eprintln!("{error:#}");
            return ExitCode::FAILURE;
        }
    };
    let trials = scenarios.into_iter().map(|scenario| {
        let skip = why_not(&scenario);
        if let Some(reason) = &skip
            && !arguments.list
        {
            eprintln!("skipped: {}: {reason}", scenario.name);
        }
        Trial::test(scenario.name.clone(), move || {
            let outcome = run(&scenario).or_else(|error| again(&scenario, &error));
            outcome.map_err(|error| Failed::from(format!("{}\n{error:#}", scenario.shows)))
        })
        .with_ignored_flag(skip.is_some())
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// Runs one that has failed a second time, unless too many have been.
fn again(scenario: &Scenario, first: &anyhow::Error) -> Result<()> {
    static AGAIN: AtomicUsize = AtomicUsize::new(0);
    let most = std::env::var("BATON_TEST_AGAIN").unwrap_or_default();
    if AGAIN.fetch_add(1, Relaxed) >= most.parse().unwrap_or(0) {
        return Err(anyhow!("{first:#}"));
    }
    // On a line of its own, behind the name of the test.
    eprintln!("\nunsteady: {}: {first:#}", scenario.name);
    run(scenario).map_err(|second| anyhow!("{first:#}\n\nAnd the second time:\n{second:#}"))
}
