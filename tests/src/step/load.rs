//! Load by wrk or ab, while other steps happen. No request may fail.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use baton_lab::Signal;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use serde::Deserialize;

use super::Step;
use crate::span::{Span, seconds};
use crate::world::{CLUSTER, World};

/// Which program, and how much.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    tool: Tool,
    #[serde(default = "page")]
    path: String,
    /// The cluster address.
    #[serde(default = "cluster")]
    at: String,
    /// At the same time.
    #[serde(default = "sixteen")]
    connections: u32,
    /// Each request over its own connection.
    #[serde(default)]
    close: bool,
    /// wrk: how long, or as long as the steps meanwhile take if that is longer.
    #[serde(default = "five_seconds")]
    r#for: Span,
    /// ab: how many.
    #[serde(default)]
    requests: u32,
    /// ab: 999 of 1000 requests take no longer than this.
    p999: Option<Span>,
    /// Steps meanwhile.
    #[serde(default)]
    meanwhile: Vec<Step>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Tool {
    Wrk,
    Ab,
}

impl Load {
    /// Does it.
    ///
    /// # Errors
    /// A step failed, or a request did.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let times = world.scratch.path().join("times");
        let begin = Instant::now();
        let mut child = self
            .command(world, &times)?
            .spawn()
            .context("cannot start the load")?;
        let steps = self.meanwhile.iter().try_for_each(|step| {
            step.run(world)
                .with_context(|| format!("meanwhile, {step}"))
        });
        if !self.meanwhile.is_empty() {
            ensure!(
                child.try_wait()?.is_none(),
                "the load was over before the steps"
            );
            std::thread::sleep(self.r#for.0.saturating_sub(begin.elapsed()));
            // wrk ends early and says what it has seen.
            kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT)?;
        }
        let output = child.wait_with_output()?;
        steps?;
        self.judge(&output)?;
        match self.p999 {
            Some(limit) => percentile(&times, 0.999, limit.0),
            None => Ok(()),
        }
    }

    fn command(&self, world: &World, times: &Path) -> Result<Command> {
        let mut command = world.command("client", self.r#for.0 + Duration::from_secs(300))?;
        let url = format!("http://{}{}", self.at, self.path);
        let connections = self.connections.to_string();
        match self.tool {
            Tool::Wrk => {
                // With other steps meanwhile, the driver ends it.
                let more = if self.meanwhile.is_empty() { 0 } else { 240 };
                let length = format!("{}s", self.r#for.0.as_secs() + more);
                command.args([
                    "wrk",
                    "-t1",
                    "--timeout",
                    "5s",
                    "-c",
                    &connections,
                    "-d",
                    &length,
                ]);
                if self.close {
                    command.args(["-H", "Connection: close"]);
                }
            }
            Tool::Ab => {
                ensure!(self.meanwhile.is_empty(), "steps meanwhile need wrk");
                ensure!(self.requests > 0, "say how many `requests` ab is to make");
                let requests = self.requests.to_string();
                // -l: hosts' names need not be of one length.
                command
                    .args([
                        "ab",
                        "-q",
                        "-l",
                        "-s",
                        "10",
                        "-c",
                        &connections,
                        "-n",
                        &requests,
                        "-g",
                    ])
                    .arg(times);
                if !self.close {
                    command.arg("-k");
                }
            }
        }
        command
            .arg(url)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Ok(command)
    }

    fn judge(&self, output: &Output) -> Result<()> {
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
                    !text.contains("Socket errors") && !text.contains("Non-2xx"),
                    "requests failed:\n{text}"
                );
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

/// `times` is ab's -g: a header, then a line a request with the whole time, in milliseconds, as the
/// fifth of six columns between tabs.
fn percentile(times: &Path, part: f64, limit: Duration) -> Result<()> {
    let text = std::fs::read_to_string(times).context("ab wrote no times")?;
    let mut all: Vec<u64> = text
        .lines()
        .skip(1)
        .filter_map(|line| line.split('\t').nth(4)?.trim().parse().ok())
        .collect();
    all.sort_unstable();
    // In range: a part of the length, which is below 2^52.
    let at = (all.len() as f64 * part) as usize;
    let Some(found) = all.get(at) else {
        bail!("ab wrote no times")
    };
    let (found, worst) = (
        Duration::from_millis(*found),
        all.last().copied().unwrap_or_default(),
    );
    eprintln!(
        "  {} requests: {part} of them within {found:?}, all within {worst} ms",
        all.len()
    );
    ensure!(
        found < limit,
        "{part} of {} requests took up to {found:?}, not {limit:?}",
        all.len()
    );
    Ok(())
}

fn page() -> String {
    "/4k".to_owned()
}

fn cluster() -> String {
    CLUSTER.to_string()
}

fn sixteen() -> u32 {
    16
}

fn five_seconds() -> Span {
    seconds(5)
}
