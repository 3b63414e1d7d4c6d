//! Rows of numbers: medians over rounds, and the spread of the rounds.

use crate::program::Size;

/// The measurements of one kind of packet.
pub struct Row {
    pub name: &'static str,
    goal: Option<f64>,
    /// The nanoseconds that a packet took in each round: with the program, and without it. The first round only warms
    /// up, and counts for nothing.
    rounds: Vec<(f64, f64)>,
}

impl Row {
    /// Makes a row without rounds. `goal` is in nanoseconds.
    pub fn new(name: &'static str, goal: Option<f64>) -> Self {
        Self {
            name,
            goal,
            rounds: Vec::new(),
        }
    }

    pub fn add(&mut self, whole: f64, floor: f64) {
        self.rounds.push((whole, floor));
    }

    fn sorted(&self, of: impl Fn(&(f64, f64)) -> f64) -> Vec<f64> {
        let mut values: Vec<f64> = self.rounds.iter().skip(1).map(of).collect();
        values.sort_by(f64::total_cmp);
        values
    }
}

pub fn print(title: &str, rows: &[Row]) {
    println!("\n{title}");
    println!(
        "  {:<36} {:>8} {:>6}   {:>13} {:>8} {:>8}",
        "", "ns", "goal", "least..most", "raw", "floor"
    );
    for row in rows.iter().filter(|row| row.rounds.len() > 1) {
        let own = row.sorted(|(whole, floor)| whole - floor);
        let (whole, floor) = (
            row.sorted(|(whole, _)| *whole),
            row.sorted(|(_, floor)| *floor),
        );
        let goal = row.goal.map_or(String::new(), |goal| format!("{goal:.0}"));
        let spread = format!("{:.0}..{:.0}", own[0], own[own.len() - 1]);
        println!(
            "  {:<36} {:>8.0} {goal:>6}   {spread:>13} {:>8.0} {:>8.0}",
            row.name,
            median(&own),
            median(&whole),
            median(&floor)
        );
    }
}

pub fn print_sizes(sizes: &[(&str, Size)]) {
    println!("\nSize");
    println!(
        "  {:<36} {:>10} {:>12} {:>12}",
        "", "verified", "BPF bytes", "JITed bytes"
    );
    for (name, size) in sizes {
        println!(
            "  {name:<36} {:>10} {:>12} {:>12}",
            size.verified, size.bpf, size.jited
        );
    }
}

/// The median of sorted values.
fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    } else {
        sorted[middle]
    }
}
