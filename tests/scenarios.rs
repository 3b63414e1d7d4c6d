//! Every scenario in `scenarios/` as a test, one at a time: labs share the machine.

use std::process::ExitCode;

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
            run(&scenario).map_err(|error| Failed::from(format!("{}\n{error:#}", scenario.shows)))
        })
        .with_ignored_flag(skip.is_some())
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
