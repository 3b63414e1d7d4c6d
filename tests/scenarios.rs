//! Every scenario in `scenarios/` as a test, two at a time. Those that fill the machine come last, one at a time. None is
//! run twice.

use std::process::ExitCode;
use std::sync::{PoisonError, RwLock};

use baton_tests::{Scenario, run, why_not};
use libtest_mimic::{Arguments, Failed, Trial};

/// How many scenarios run at a time. Most of their time is spent in waiting.
const LABS: usize = 2;

/// Held by every scenario while it runs: shared, or, by one that fills the machine, alone.
static MACHINE: RwLock<()> = RwLock::new(());

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(LABS);
    let mut scenarios = match Scenario::all() {
        Ok(scenarios) => scenarios,
        Err(error) => {
            eprintln!("{error:#}");
            return ExitCode::FAILURE;
        }
    };
    scenarios.sort_by_key(|scenario| scenario.alone);
    let trials = scenarios.into_iter().map(|scenario| {
        let skip = why_not(&scenario);
        if let Some(reason) = &skip
            && !arguments.list
        {
            eprintln!("skipped: {}: {reason}", scenario.name);
        }
        Trial::test(scenario.name.clone(), move || {
            let outcome = on_the_machine(&scenario);
            outcome.map_err(|error| Failed::from(format!("{}\n{error:#}", scenario.shows)))
        })
        .with_ignored_flag(skip.is_some())
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// Runs a scenario once no other is in its way.
fn on_the_machine(scenario: &Scenario) -> anyhow::Result<()> {
    // The lock guards no data that a scenario which panicked could have left half changed.
    if scenario.alone {
        let _alone = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
        run(scenario)
    } else {
        let _shared = MACHINE.read().unwrap_or_else(PoisonError::into_inner);
        run(scenario)
    }
}
