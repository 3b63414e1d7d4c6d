//! Runs wrk, and reads the last line that its script bench/wrk.lua prints.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::competitor::Competitor;
use crate::lab::{BenchLab, in_bench};

/// A response that takes longer than this is an error. wrk's own limit is two seconds. That is too short: a takeover
/// takes one second, after which TCP retransmits only when its timer expires. The programs that people use wait for 30
/// seconds and longer.
const PATIENCE: &str = "5s";

/// The target of wrk's requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    name: &'static str,
    /// The addresses, which wrk's threads take in turn.
    addresses: &'static [&'static str],
    port: u16,
    /// The name of the server that wrk wants, by TLS. Without one, wrk speaks plain HTTP.
    server: Option<&'static str>,
}

impl Target {
    /// The cluster address.
    pub const BATON: Target = Target::new("baton", &["10.77.0.100"], 80);
    /// HAProxy, on the port on which it chooses the server by the path.
    pub const HAPROXY_ROUTING: Target = Target::new("HAProxy", &["10.77.0.3"], 81);

    /// The cluster address in the lab of `--saps`.
    pub const SAPS: Target = Target::new("SAPS", &["10.77.0.100"], 80);
    /// The servers in the lab of `--saps` that have the same pages and their own TCP.
    pub const SAPS_DIRECT: Target = Target::new(
        "direct",
        &["10.77.0.21", "10.77.0.22", "10.77.0.23", "10.77.0.24"],
        80,
    );

    /// One of the addresses, which are taken in turn, and the port.
    pub fn address(self, turn: usize) -> (&'static str, u16) {
        (self.addresses[turn % self.addresses.len()], self.port)
    }

    /// The name of the server that clients want, if they speak TLS.
    pub fn server(self) -> Option<&'static str> {
        self.server
    }

    /// The same at another port.
    pub const fn at_port(self, port: u16) -> Target {
        Target { port, ..self }
    }

    /// A service or servers with these addresses.
    pub const fn new(name: &'static str, addresses: &'static [&'static str], port: u16) -> Target {
        Target {
            name,
            addresses,
            port,
            server: None,
        }
    }

    /// The same on the port of HTTPS, where clients want the server of this name.
    pub const fn tls(
        name: &'static str,
        addresses: &'static [&'static str],
        server: &'static str,
    ) -> Target {
        Target {
            name,
            addresses,
            port: 443,
            server: Some(server),
        }
    }

    /// The URL of a page.
    fn url(self, page: &str) -> String {
        let (scheme, host) = match self.server {
            Some(server) => ("https", server),
            None => ("http", self.addresses[0]),
        };
        format!("{scheme}://{host}:{}{page}", self.port)
    }
}

impl From<Competitor> for Target {
    fn from(competitor: Competitor) -> Target {
        Target::new(competitor.name(), competitor.addresses(), 80)
    }
}

/// The pages that wrk asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pages {
    /// One page, such as `/4k`.
    One(&'static str),
    /// Two pages one after the other, over whatever connection is free.
    InTurn([&'static str; 2]),
    /// Two pages, of which each thread, and so each connection, has its own.
    OneAThread([&'static str; 2]),
}

/// The task of wrk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// The pages.
    pub pages: Pages,
    /// Whether each request has a connection of its own.
    pub close: bool,
    /// The number of connections at the same time.
    pub connections: u32,
    /// The number of threads. wrk has one address a thread, so with as many threads as servers, direct access also
    /// uses all servers at the same time.
    pub threads: u32,
    /// The length of the run.
    pub time: Duration,
}

/// The results of wrk.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(crate) struct Measured {
    /// The number of complete answers.
    pub requests: u64,
    /// The length of the run, in microseconds.
    pub micros: u64,
    connect: u64,
    read: u64,
    write: u64,
    status: u64,
    timeout: u64,
}

impl Measured {
    /// The rate, in requests a second.
    pub fn rate(&self) -> f64 {
        self.requests as f64 * 1e6 / self.micros as f64
    }

    /// The number of connections and requests that failed, for whatever reason.
    pub fn errors(&self) -> u64 {
        self.connect + self.read + self.write + self.status + self.timeout
    }
}

/// Runs wrk on the client until it ends.
pub(crate) fn run(lab: &BenchLab, target: impl Into<Target>, work: Work) -> Result<Measured> {
    run_on(lab, "client", target, work)
}

/// Runs wrk on another host until it ends.
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
    if target.server.is_some() {
        command.env("OPENSSL_CONF", in_bench("https/openssl.cnf")?);
    }
    if work.close {
        command.args(["--header", "Connection: close"]);
    }
    command.arg(target.url(first));

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
