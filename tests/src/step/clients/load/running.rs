//! A running program that sends load, and the judgement of its report.

use std::process::{Child, Output};

use anyhow::{Result, ensure};
use baton_lab::Signal;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use serde::Deserialize;

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Tool {
    Wrk,
    Ab,
}

/// A running wrk, which goes on until it is told to end.
pub struct Going {
    pub(super) child: Child,
    pub(super) judge: Judge,
}

/// The facts by which a program's report is judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judge {
    pub(super) tool: Tool,
    pub(super) requests: u32,
    pub(super) may_fail: bool,
}

impl Going {
    /// Ends the load, and returns how long its requests took.
    ///
    /// # Errors
    /// The load had ended already, or a request failed.
    pub fn end(mut self) -> Result<String> {
        ensure!(self.child.try_wait()?.is_none(), "the load is over already");
        // On SIGINT wrk ends early and prints its report.
        kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGINT)?;
        let output = self.child.wait_with_output()?;
        self.judge.check(&output)?;
        let text = String::from_utf8_lossy(&output.stdout);
        let line = |first: &str| {
            text.lines()
                .find_map(|line| line.trim().strip_prefix(first))
        };
        // The columns of wrk are average, deviation and maximum.
        let longest = line("Latency ").and_then(|line| line.split_whitespace().nth(2));
        Ok(format!(
            "wrk: {}; latency: longest {}, p99 {}",
            text.lines()
                .find(|line| line.contains(" requests in "))
                .unwrap_or_default()
                .trim(),
            longest.unwrap_or_default(),
            line("99%").unwrap_or_default().trim()
        ))
    }
}

impl Judge {
    pub(super) fn check(self, output: &Output) -> Result<()> {
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "{:?}: {}\n{text}{errors}",
            self.tool,
            output.status
        );
        let done = match self.tool {
            Tool::Wrk => {
                ensure!(
                    self.may_fail || !text.contains("Socket errors"),
                    "requests failed:\n{text}"
                );
                ensure!(!text.contains("Non-2xx"), "requests failed:\n{text}");
                text.lines()
                    .find_map(|line| line.trim().split_once(" requests in")?.0.parse().ok())
            }
            Tool::Ab => {
                ensure!(
                    value(&text, "Failed requests:") == Some(0),
                    "requests failed:\n{text}"
                );
                ensure!(!text.contains("Non-2xx"), "requests failed:\n{text}");
                value(&text, "Complete requests:").filter(|done| *done == u64::from(self.requests))
            }
        };
        ensure!(
            done.is_some_and(|done: u64| done > 0),
            "requests are missing:\n{text}"
        );
        Ok(())
    }
}

fn value(text: &str, label: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(label)?.trim().parse().ok())
}
