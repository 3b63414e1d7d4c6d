//! The demonstration: a small cluster on this machine, real requests, and a page that tells what happened, with the
//! numbers of this run.
//!
//! Every claim on the page is checked ([`claims`]) against what curl and wrk saw, what the servers logged, and what
//! nftables counted on the bridge.

mod access_log;
mod claims;
mod curl;
#[cfg(test)]
mod example;
mod interrupt;
mod link;
mod page;
mod progress;
mod stage;
mod wire;
mod wrk;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use baton_lab::servers::{FILES, SUMS};

use self::access_log::AccessLog;
use self::curl::{Answer, Curl};
use self::interrupt::{Interrupt, Interrupted};
use self::link::LinkStats;
use self::progress::Progress;
use self::stage::Stage;
use self::wire::Wire;
use self::wrk::Load;

/// The number of requests that each have a connection of their own.
const SINGLES: usize = 9;
/// The number of requests that share one connection.
const KEPT: usize = 6;
/// The page that wrk asks for; its size is in [`FILES`].
const LOAD_FILE: &str = "4k";
/// The file that is downloaded.
const DOWNLOAD_FILE: &str = "64m";

/// The exit status that a shell reports for a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

/// Everything that was observed in a run.
#[derive(Clone, Debug)]
struct Observed {
    /// The cluster's only address and port.
    cluster: SocketAddr,
    /// The client's own address.
    client: IpAddr,
    /// The connection server's name.
    cs: String,
    /// The data servers' names.
    servers: Vec<String>,
    /// The requests that each had a connection of their own.
    singles: Vec<Answer>,
    /// The requests on one connection, each for the server that its path names.
    kept: Vec<Answer>,
    /// The download, and the SHA-256 of its body.
    download: (Answer, String),
    /// The file that should have been downloaded.
    file: FileFacts,
    /// The results of many requests at once; `load_bytes` is the size of each answer.
    load: Load,
    load_bytes: u64,
    /// The log of each data server.
    logs: Vec<AccessLog>,
    /// The packets that crossed the bridge.
    wire: Wire,
    /// The statistics of the connection server's interface.
    link: LinkStats,
    /// The connection server's own counters, counted from the first request on.
    counters: BTreeMap<String, u64>,
    /// How long the whole run took, including raising the lab.
    took: Duration,
}

/// The size and digest of a file that the servers serve.
#[derive(Clone, Debug)]
struct FileFacts {
    bytes: u64,
    sha256: String,
}

/// Raises the lab, runs the demonstration, takes the lab down, and prints the page. No program may take longer than
/// `timeout`.
///
/// # Errors
/// The lab cannot be raised or taken down, a program fails, or something is not as the page claims.
pub fn run(timeout: Duration) -> Result<ExitCode> {
    let interrupt = Interrupt::install()?;
    let mut progress = Progress::new(7);
    let outcome = perform(&mut progress, &interrupt, timeout);
    progress.end();
    let seen = match outcome {
        Ok(seen) => seen,
        // After Ctrl-C the error of a program that it ended does not matter.
        Err(error) if error.is::<Interrupted>() || interrupt.asked() => {
            eprintln!("baton: interrupted; the demonstration's lab is down");
            return Ok(ExitCode::from(INTERRUPTED));
        }
        Err(error) => return Err(error),
    };
    let claims = claims::all(&seen);
    print!("{}", page::page(&seen, &claims));
    let broken: Vec<String> = claims
        .iter()
        .filter_map(|claim| Some(format!("\n- {}: {}", claim.says, claim.broken.as_ref()?)))
        .collect();
    if !broken.is_empty() {
        bail!("this run was not as it should be:{}", broken.concat());
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs all steps that need the lab.
fn perform(progress: &mut Progress, interrupt: &Interrupt, timeout: Duration) -> Result<Observed> {
    let begin = Instant::now();
    progress.step("raising a cluster of five network namespaces");
    let stage = Stage::raise(progress, timeout)?;
    let seen = observe(&stage, progress, interrupt).map_err(|error| explain(error, &stage));
    progress.step("taking the cluster down");
    let down = stage.down();
    let seen = seen?;
    down?;
    Ok(Observed {
        took: begin.elapsed(),
        ..seen
    })
}

/// Adds to a failure what the connection server knew just after it.
fn explain(error: anyhow::Error, stage: &Stage) -> anyhow::Error {
    match stage.status() {
        Ok(status) if !error.is::<Interrupted>() => {
            anyhow!(
                "{error:#}\n\nThen {} said of itself:\n{status}",
                stage.cs.name
            )
        }
        _ => error,
    }
}

fn observe(stage: &Stage, progress: &mut Progress, interrupt: &Interrupt) -> Result<Observed> {
    let (lab, client) = (stage.lab()?, stage.client.name.as_str());
    let at = cluster_address(stage, interrupt)?;
    let before = (link::read(lab, &stage.cs.name)?, stage.status()?.counters);
    wire::watch(stage, at)?;
    let curl = Curl {
        lab,
        client,
        at,
        timeout: stage.timeout,
    };

    interrupt.check()?;
    progress.step("requests, each on a connection of its own");
    let mut singles = Vec::new();
    for _ in 0..SINGLES {
        interrupt.check()?;
        singles.extend(curl.texts(&["/whoami"])?);
    }
    progress.step("requests on one connection, each for another server");
    let names = stage.servers.iter().map(|server| &server.name);
    let paths: Vec<String> = (0..KEPT)
        .zip(names.cycle())
        .map(|(number, name)| format!("/{name}/page-{number}"))
        .collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let kept = curl.texts(&paths)?;

    interrupt.check()?;
    progress.step("a download of 64 MiB");
    let file = file_facts(DOWNLOAD_FILE)?;
    let download = curl.file(&format!("/{DOWNLOAD_FILE}"))?;

    interrupt.check()?;
    progress.step("three seconds of load");
    let load = wrk::run(lab, client, at, &format!("/{LOAD_FILE}"))?;

    interrupt.check()?;
    progress.step("reading logs and counters");
    let files: Vec<(&str, PathBuf)> = stage
        .servers
        .iter()
        .map(|server| (server.name.as_str(), server.directory.join("access.log")))
        .collect();
    let files: Vec<_> = files.iter().map(|(name, file)| (*name, &**file)).collect();
    let least = SINGLES + KEPT + 1 + usize::try_from(load.requests)?;
    let logs = access_log::read(&files, |logs| {
        logs.iter().map(|log| log.entries.len()).sum::<usize>() >= least
    })?;
    Ok(Observed {
        cluster: at,
        client: *stage
            .client
            .addresses
            .first()
            .context("the client has no address")?,
        cs: stage.cs.name.clone(),
        servers: stage
            .servers
            .iter()
            .map(|server| server.name.clone())
            .collect(),
        singles,
        kept,
        download,
        file,
        load,
        load_bytes: file_facts(LOAD_FILE)?.bytes,
        logs,
        wire: wire::read(lab)?,
        link: link::read(lab, &stage.cs.name)?.since(before.0),
        counters: since(stage.status()?.counters, &before.1),
        took: Duration::ZERO,
    })
}

/// The difference to earlier counts. No count ever goes down.
fn since(now: BTreeMap<String, u64>, before: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let more = |(name, count): (String, u64)| {
        let count = count.saturating_sub(before.get(&name).copied().unwrap_or(0));
        (name, count)
    };
    now.into_iter().map(more).collect()
}

/// Returns the address of the only service, as the connection server knows it, once all data servers are usable. On a
/// slow machine the first heartbeats come late.
fn cluster_address(stage: &Stage, interrupt: &Interrupt) -> Result<SocketAddr> {
    let begin = Instant::now();
    let mut status = stage.status()?;
    while status
        .services
        .iter()
        .any(|service| !service.out.is_empty())
        && begin.elapsed() < stage.timeout
    {
        interrupt.check()?;
        std::thread::sleep(Duration::from_millis(50));
        status = stage.status()?;
    }
    let [service] = &status.services[..] else {
        bail!(
            "labs/split.toml has {} services instead of one",
            status.services.len()
        );
    };
    ensure!(
        service.out.is_empty(),
        "not all data servers are usable: {:?}",
        service.out
    );
    service
        .address
        .parse()
        .with_context(|| format!("{} is no address", service.address))
}

fn file_facts(name: &str) -> Result<FileFacts> {
    let size = FILES.iter().find(|(known, _)| *known == name);
    let sum = SUMS
        .lines()
        .find_map(|line| line.split_once("  ").filter(|(_, file)| *file == name));
    match (size, sum) {
        (Some((_, bytes)), Some((sha256, _))) => Ok(FileFacts {
            bytes: *bytes,
            sha256: sha256.to_owned(),
        }),
        _ => bail!("the lab serves no file /{name}"),
    }
}

impl Observed {
    /// The number of bytes of bodies that the client got.
    fn got(&self) -> u64 {
        let single = self
            .singles
            .iter()
            .chain(&self.kept)
            .chain([&self.download.0]);
        single.map(|answer| answer.bytes).sum::<u64>() + self.load.requests * self.load_bytes
    }

    /// The number of bytes, headers included, that data servers sent from the cluster address.
    fn sent(&self) -> u64 {
        self.wire
            .answered
            .values()
            .map(|crossed| crossed.bytes)
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_the_demonstration_are_known() -> Result<()> {
        assert_eq!(file_facts(DOWNLOAD_FILE)?.bytes, 64 << 20);
        assert_eq!(file_facts(DOWNLOAD_FILE)?.sha256.len(), 64);
        assert_eq!(file_facts(LOAD_FILE)?.bytes, 4096);
        assert!(file_facts("whoami").is_err());
        Ok(())
    }
}
