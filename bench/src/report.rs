//! Writes results to standard output, and to a file that is named after the time.

use std::time::SystemTime;

use anyhow::{Context as _, Result};

use crate::options::Options;

/// A report in Markdown, which grows section by section.
pub(crate) struct Report {
    started: SystemTime,
    text: String,
}

impl Report {
    /// A report that begins with this description of the machine.
    pub fn new(machine: String) -> Report {
        let started = SystemTime::now();
        let stamp = humantime::format_rfc3339_seconds(started);
        Report {
            started,
            text: format!("# baton, direct access and HAProxy side by side, {stamp}\n\n{machine}"),
        }
    }

    /// Adds a section.
    pub fn add(&mut self, section: String) {
        self.text.push('\n');
        self.text.push_str(&section);
    }

    /// Prints the report, and writes it to the results folder.
    pub fn write(&self, options: &Options) -> Result<()> {
        print!("{}", self.text);
        let stamp = humantime::format_rfc3339_seconds(self.started).to_string();
        let path = options
            .results
            .join(format!("{}.md", stamp.replace(':', "")));
        std::fs::create_dir_all(&options.results)
            .and_then(|()| std::fs::write(&path, &self.text))
            .with_context(|| format!("write {}", path.display()))?;
        eprintln!("written to {}", path.display());
        Ok(())
    }
}
