//! wrk, and what it says in its script's last line: bench/wrk.lua.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::competitor::Competitor;
use crate::lab::{BenchLab, in_bench};

/// A response that takes longer than this is an error. wrk's own limit is two seconds, and a takeover takes one, after
/// which TCP sends again when its timer says so; programs that people use wait for 30 seconds and longer.
const PATIENCE: &str = "5s";

/// Whom wrk asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    name: &'static str,
    /// Each thread has the next.
    addresses: &'static [&'static str],
    port: u16,
}

impl Target {
    /// The cluster address.
    pub const BATON: Target = Target::new("baton", &["10.77.0.100"], 80);
    /// HAProxy, where it chooses the server by the path.
    pub const HAPROXY_ROUTING: Target = Target::new("HAProxy", &["10.77.0.3"], 81);

    /// The same, of `--saps`.
    pub const SAPS: Target = Target::new("SAPS", &["10.77.0.100"], 80);
    /// Servers of `--saps` that have the same pages and their own TCP.
    pub const SAPS_DIRECT: Target = Target::new(
        "direct",
        &["10.77.0.21", "10.77.0.22", "10.77.0.23", "10.77.0.24"],
        80,
    );

    /// Where clients connect first.
    pub fn first(self) -> (&'static str, u16) {
        (self.addresses[0], self.port)
    }

    /// A service or servers by these addresses.
    pub const fn new(name: &'static str, addresses: &'static [&'static str], port: u16) -> Target {
        Target {
            name,
            addresses,
            port,
        }
    }
}

impl From<Competitor> for Target {
    fn from(competitor: Competitor) -> Target {
        Target::new(competitor.name(), competitor.addresses(), 80)
    }
}

/// What wrk asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pages {
    /// This: `/4k`.
    One(&'static str),
    /// One after the other, over whatever connection is free.
    InTurn([&'static str; 2]),
    /// Each thread has its own, and so has each connection.
    OneAThread([&'static str; 2]),
}

/// What wrk is to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// What is asked for.
    pub pages: Pages,
    /// Whether each request has a connection of its own.
    pub close: bool,
    /// How many at once.
    pub connections: u32,
    /// By how many threads. As many as servers, so that direct access too uses all of them at once:
    /// wrk has one address a thread.
    pub threads: u32,
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
pub(crate) fn run(lab: &BenchLab, target: impl Into<Target>, work: Work) -> Result<Measured> {
    run_on(lab, "client", target, work)
}

/// The same on another host.
pub(crate) fn run_on(
    lab: &BenchLab,
    host: &str,
    target: impl Into<Target>,
    work: Work,
) -> Result<Measured> {
    let target = target.into();
    let (first, pages, each) = match work.pages {
        Pages::One(page) => (page, String::new(), ""),
        Pages::InTurn(pages) => (pages[0], pages.join(","), "turn"),
        Pages::OneAThread(pages) => (pages[0], pages.join(","), "thread"),
    };
    let mut command = lab.running()?.exec(host)?;
    command
        .arg("wrk")
        .args(["--threads", &work.threads.to_string()])
        .args(["--connections", &work.connections.to_string()])
        .args(["--duration", &format!("{}s", work.time.as_secs().max(1))])
        .args(["--timeout", PATIENCE])
        .args(["--script", &in_bench("wrk.lua")?])
        .env("BENCH_ADDRESSES", target.addresses.join(","))
        .env("BENCH_PORT", target.port.to_string())
        .env("BENCH_PAGES", pages)
        .env("BENCH_EACH", each);
    if work.close {
        command.args(["--header", "Connection: close"]);
    }
    command.arg(format!(
        "http://{}:{}{first}",
        target.addresses[0], target.port
    ));

    let output = command
        .output()
        .context("run wrk (on Debian, `apt-get install wrk`)")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let last = said.lines().last().unwrap_or_default();
    match serde_json::from_str(last) {
        Ok(measured) if output.status.success() => Ok(measured),
        _ => bail!(
            "wrk against {} failed, {}: {said}{}",
            target.name,
            output.status,
            String::from_utf8_lossy(&output.stderr)
        ),
    }
}
