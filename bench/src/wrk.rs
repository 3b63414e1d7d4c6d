//! wrk, and what it says in its script's last line: bench/wrk.lua.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::competitor::Competitor;
use crate::lab::{BenchLab, in_bench};

/// One for each server, so that direct access too uses all of them at once: wrk has one address a
/// thread.
const THREADS: u32 = 3;

/// What wrk is to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// What is asked for: `/4k`.
    pub path: &'static str,
    /// Whether each request has a connection of its own.
    pub close: bool,
    /// How many at once.
    pub connections: u32,
    /// For how long.
    pub time: Duration,
}

/// What wrk measured.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(crate) struct Measured {
    /// Answers that came whole.
    pub requests: u64,
    /// How long it took, in microseconds.
    pub micros: u64,
    connect: u64,
    read: u64,
    write: u64,
    status: u64,
    timeout: u64,
}

impl Measured {
    /// Requests a second.
    pub fn rate(&self) -> f64 {
        self.requests as f64 * 1e6 / self.micros as f64
    }

    /// Connections and requests that failed, in whatever way.
    pub fn errors(&self) -> u64 {
        self.connect + self.read + self.write + self.status + self.timeout
    }
}

/// Runs wrk on the client to its end.
pub(crate) fn run(lab: &BenchLab, competitor: Competitor, work: Work) -> Result<Measured> {
    let addresses = competitor.addresses();
    let mut command = lab.client()?;
    command
        .arg("wrk")
        .args(["--threads", &THREADS.to_string()])
        .args(["--connections", &work.connections.to_string()])
        .args(["--duration", &format!("{}s", work.time.as_secs().max(1))])
        .args(["--script", &in_bench("wrk.lua")?])
        .env("BENCH_ADDRESSES", addresses.join(","));
    if work.close {
        command.args(["--header", "Connection: close"]);
    }
    command.arg(format!("http://{}{}", addresses[0], work.path));

    let output = command
        .output()
        .context("run wrk (on Debian, `apt-get install wrk`)")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let last = said.lines().last().unwrap_or_default();
    match serde_json::from_str(last) {
        Ok(measured) if output.status.success() => Ok(measured),
        _ => bail!(
            "wrk against {} failed, {}: {said}{}",
            competitor.name(),
            output.status,
            String::from_utf8_lossy(&output.stderr)
        ),
    }
}
