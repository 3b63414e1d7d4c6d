//! Runs many scenarios, several labs at a time, and says how each ended. No run is ever repeated because it failed:
//! `--repeat` runs every scenario that often, and one failure fails the whole.

mod busy;
mod choice;
mod interrupt;
mod queue;
mod report;

use std::process::ExitCode;
use std::sync::Mutex;
use std::thread;

use anyhow::{Result, ensure};
use clap::Parser;

use crate::scenario::{Folder, Scenario};
use crate::why_not;
use busy::BusyLoops;
use choice::Choice;
use queue::Queue;
use report::Report;

/// Runs lab scenarios: clusters of network namespaces with real servers and clients.
#[derive(Debug, Parser)]
#[command(name = "scenarios")]
pub struct Options {
    /// Scenarios to run, by name; `*` stands for any characters. Default: all.
    names: Vec<String>,
    /// Only the scenarios that every change has to pass (`core = true`).
    #[arg(long)]
    core: bool,
    /// The short scenarios of `smoke/`, for machines that are emulated.
    #[arg(long)]
    smoke: bool,
    /// How often each of them runs.
    #[arg(long, default_value_t = 1)]
    repeat: usize,
    /// How many busy loops run beside them.
    #[arg(long, default_value_t = 0)]
    busy: usize,
    /// How many labs are up at a time: most of a scenario's time is spent in waiting.
    #[arg(long, default_value_t = 3)]
    labs: usize,
    /// List the scenarios, and run none.
    #[arg(long)]
    list: bool,
}

/// Runs what the command line asks for. Fails if any run has failed, or if there was none.
pub fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("scenarios: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs what the command line asks for. Returns whether all went well.
fn run(options: &Options) -> Result<bool> {
    let folder = if options.smoke {
        Folder::Smoke
    } else {
        Folder::Scenarios
    };
    let choice = Choice::new(&options.names, options.core);
    let chosen = choice.of(Scenario::all(folder)?)?;
    if options.list {
        chosen.iter().for_each(|one| println!("{}", one.name));
        return Ok(true);
    }
    ensure!(
        options.repeat > 0 && options.labs > 0,
        "--repeat and --labs must be 1 or more"
    );

    let (mut report, mut runnable) = (Report::default(), Vec::new());
    for scenario in chosen {
        match why_not(&scenario) {
            Some(reason) => report.skip(&scenario.name, &reason),
            None => runnable.push(scenario),
        }
    }
    interrupt::take_labs_down(&runnable)?;
    let busy = BusyLoops::start(options.busy);
    let (queue, report) = (Queue::new(&runnable, options.repeat), Mutex::new(report));
    thread::scope(|scope| {
        for _ in 0..options.labs {
            scope.spawn(|| {
                queue.work(|scenario, outcome| {
                    // If a thread panicked while it printed a line, the report it shares is still consistent.
                    let mut report = report.lock().unwrap_or_else(|error| error.into_inner());
                    report.note(scenario, outcome);
                });
            });
        }
    });
    drop(busy);
    let report = report
        .into_inner()
        .unwrap_or_else(|error| error.into_inner());
    report.print();
    Ok(report.is_good())
}
