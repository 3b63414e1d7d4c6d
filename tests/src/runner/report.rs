//! The report on the runs: a line for each as it ends, and at the end the failures with their evidence and a table.
//! The last lines have the form of Rust's own test runner, so that one script sums up both.

use std::collections::BTreeMap;
use std::time::Duration;

use super::queue::Outcome;
use crate::scenario::Scenario;

/// The results so far.
#[derive(Default)]
pub struct Report {
    /// One row of the table for each scenario, by its name.
    rows: BTreeMap<String, Row>,
    skipped: usize,
}

#[derive(Default)]
struct Row {
    runs: u32,
    failures: u32,
    total: Duration,
    longest: Duration,
    /// The evidence of the last run that failed.
    evidence: String,
}

impl Report {
    /// Notes a scenario that cannot run on this machine.
    pub fn skip(&mut self, name: &str, reason: &str) {
        println!("test {name} ... ignored, {reason}");
        self.skipped += 1;
    }

    /// Notes a run that has ended.
    pub fn note(&mut self, scenario: &Scenario, outcome: Outcome) {
        let row = self.rows.entry(scenario.name.clone()).or_default();
        row.runs += 1;
        row.total += outcome.took;
        row.longest = row.longest.max(outcome.took);
        let result = if outcome.error.is_some() {
            "FAILED"
        } else {
            "ok"
        };
        let seconds = outcome.took.as_secs_f64();
        println!("test {} ... {result} ({seconds:.1} s)", scenario.name);
        if let Some(error) = outcome.error {
            row.failures += 1;
            row.evidence = format!("{}\n{error}", scenario.shows);
            // Print the failure at once, so that nobody has to wait for the end of a run of hours.
            println!("{}: {error}", scenario.name);
        }
    }

    /// Whether something ran and nothing failed.
    pub fn is_good(&self) -> bool {
        !self.rows.is_empty() && self.failed().next().is_none()
    }

    /// Prints the failures, the table, and the sum.
    pub fn print(&self) {
        self.print_failures();
        let mut rows: Vec<(&String, &Row)> = self.rows.iter().collect();
        rows.sort_by_key(|(_, row)| std::cmp::Reverse((row.failures, row.longest)));
        println!("\n| scenario | runs | failed | seconds | longest |\n|---|--:|--:|--:|--:|");
        for (name, row) in rows {
            println!(
                "| {name} | {} | {} | {:.1} | {:.1} |",
                row.runs,
                row.failures,
                (row.total / row.runs).as_secs_f64(),
                row.longest.as_secs_f64()
            );
        }
        let sum = |count: fn(&Row) -> u32| self.rows.values().map(count).sum::<u32>();
        let (runs, failures) = (sum(|row| row.runs), sum(|row| row.failures));
        println!(
            "\ntest result: {}. {} passed; {failures} failed; {} ignored",
            if self.is_good() { "ok" } else { "FAILED" },
            runs - failures,
            self.skipped
        );
    }

    fn print_failures(&self) {
        if self.failed().next().is_none() {
            return;
        }
        println!("\nfailures:\n");
        for (name, row) in self.failed() {
            println!("---- {name} ----\n{}\n", row.evidence);
        }
        println!("\nfailures:");
        for (name, row) in self.failed() {
            // A scenario that failed twice counts as two failures in the sum.
            (0..row.failures).for_each(|_| println!("    {name}"));
        }
    }

    fn failed(&self) -> impl Iterator<Item = (&String, &Row)> {
        self.rows.iter().filter(|(_, row)| row.failures > 0)
    }
}
