//! Takes the labs of a run down when the run is interrupted.

use std::process::exit;
use std::thread;

use anyhow::{Context as _, Result};
use baton_lab::LabName;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::scenario::Scenario;

/// The exit status that shells report for a program that SIGINT has ended.
const INTERRUPTED: i32 = 130;

/// Catches SIGINT and SIGTERM: after this call they take down those labs of these scenarios that are up, and end the
/// process.
///
/// # Errors
/// The signals cannot be caught.
pub fn take_labs_down(scenarios: &[Scenario]) -> Result<()> {
    let names: Vec<LabName> = (scenarios.iter())
        .map(|scenario| scenario.lab.name().clone())
        .collect();
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot catch signals")?;
    thread::spawn(move || {
        if signals.forever().next().is_none() {
            return;
        }
        eprintln!("scenarios: interrupted: the labs are taken down");
        for name in &names {
            if let Err(error) = baton_lab::down(name, |_| {}) {
                eprintln!("scenarios: {error}");
            }
        }
        exit(INTERRUPTED);
    });
    Ok(())
}
