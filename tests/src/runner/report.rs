//! What is said of the runs: a line for each as it ends; at the end what failed, with evidence, and a table. The last
//! lines have the form of Rust's own test runner, so that one script sums up both.

use std::collections::BTreeMap;
use std::time::Duration;

use super::queue::Outcome;
use crate::scenario::Scenario;

/// What was seen so far.
#[derive(Default)]
pub struct Report {
    /// By name.
    rows: BTreeMap<String, Row>,
    skipped: usize,
}

#[derive(Default)]
struct Row {
    runs: u32,
    failures: u32,
    total: Duration,
    longest: Duration,
    /// Of the last run that failed.
    evidence: String,
}

impl Report {
    /// A scenario cannot run here.
    pub fn skip(&mut self, name: &str, reason: &str) {
        println!("test {name} ... ignored, {reason}");
        self.skipped += 1;
    }

    /// A run has ended.
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
            // At once: a run of hours need not be waited for.
            println!("{}: {error}", scenario.name);
        }
    }

    /// Whether something ran and nothing failed.
    pub fn is_good(&self) -> bool {
        !self.rows.is_empty() && self.failed().next().is_none()
    }

    /// What failed, the table, and the sum.
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
            // One that fails twice is two failures in the sum.
            (0..row.failures).for_each(|_| println!("    {name}"));
        }
    }

    fn failed(&self) -> impl Iterator<Item = (&String, &Row)> {
        self.rows.iter().filter(|(_, row)| row.failures > 0)
    }
}
