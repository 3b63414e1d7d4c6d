//! The progress bar of commands that take a while.

use std::time::Duration;

use console::Term;
use indicatif::{ProgressBar, ProgressStyle};

/// A bar on standard error; `None` if that is no terminal.
pub fn progress_bar(length: u64) -> Option<ProgressBar> {
    Term::stderr().is_term().then(|| {
        let bar = ProgressBar::new(length);
        let template = "{spinner:.green} [{bar:20.green}] {pos}/{len} {msg} {elapsed:.dim}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        bar
    })
}
