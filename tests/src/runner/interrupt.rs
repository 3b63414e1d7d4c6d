//! A run that is interrupted takes its labs down.

use std::process::exit;
use std::thread;

use anyhow::{Context as _, Result};
use baton_lab::LabName;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::scenario::Scenario;

/// As shells say it of a program that SIGINT has ended.
const INTERRUPTED: i32 = 130;

/// From now on SIGINT and SIGTERM take the labs of these scenarios down, those that are up, and end the process.
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
