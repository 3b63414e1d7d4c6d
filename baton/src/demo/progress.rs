//! Shows how far the demonstration is: by a bar on a terminal, by plain lines elsewhere.

use indicatif::ProgressBar;

use crate::bar::progress_bar;

/// The progress through the steps, shown on standard error.
pub struct Progress {
    bar: Option<ProgressBar>,
    steps: u64,
    step: u64,
}

impl Progress {
    /// Begins a progress of so many steps.
    pub fn new(steps: u64) -> Progress {
        Progress {
            bar: progress_bar(steps),
            steps,
            step: 0,
        }
    }

    /// Begins the next step.
    pub fn step(&mut self, what: &str) {
        self.step += 1;
        match &self.bar {
            Some(bar) => {
                bar.set_position(self.step);
                bar.set_message(what.to_owned());
            }
            None => eprintln!("[{}/{}] {what}", self.step, self.steps),
        }
    }

    /// Shows a detail of the current step.
    pub fn detail(&self, what: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(what.to_owned()),
            None => eprintln!("      {what}"),
        }
    }

    /// Removes the bar, so that the terminal is as before.
    pub fn end(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}
