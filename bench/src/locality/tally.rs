//! Reads what the caches did from their own logs (see bench/locality/cache.conf).

use std::fs;
use std::iter::Sum;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::lab::BenchLab;

/// How long the lines of answered requests may take until they are in the logs.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time between two looks at the logs.
const PAUSE: Duration = Duration::from_millis(500);

/// The requests that one server got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub requests: u64,
    hits: u64,
}

impl Tally {
    /// The part of requests that the cache answered.
    pub fn hit_rate(self) -> f64 {
        self.hits as f64 / self.requests as f64
    }

    /// The difference to an earlier tally.
    pub fn since(self, earlier: &Tally) -> Tally {
        Tally {
            requests: self.requests - earlier.requests,
            hits: self.hits - earlier.hits,
        }
    }

    /// Counts the lines of a log, each of which begins with `$upstream_cache_status`.
    fn of(log: &str) -> Tally {
        let statuses = || log.lines().filter_map(|line| line.split(' ').next());
        Tally {
            requests: statuses().count() as u64,
            hits: statuses().filter(|status| *status == "HIT").count() as u64,
        }
    }
}

impl Sum for Tally {
    fn sum<I: Iterator<Item = Tally>>(all: I) -> Tally {
        all.fold(Tally::default(), |sum, one| Tally {
            requests: sum.requests + one.requests,
            hits: sum.hits + one.hits,
        })
    }
}

/// The tally of each server, once the logs no longer grow and have a line for each of so many requests. They may have
/// more lines: a client that repeats a request while its connection moves can be served twice.
pub(super) fn settled(lab: &BenchLab, servers: &[&str], requests: u64) -> Result<Vec<Tally>> {
    let start = Instant::now();
    let mut before = tallies(lab, servers)?;
    loop {
        thread::sleep(PAUSE);
        let now = tallies(lab, servers)?;
        let logged = now.iter().copied().sum::<Tally>().requests;
        if logged >= requests && now == before {
            return Ok(now);
        }
        if start.elapsed() > PATIENCE {
            bail!("the caches have logged {logged} requests, but {requests} were answered");
        }
        before = now;
    }
}

fn tallies(lab: &BenchLab, servers: &[&str]) -> Result<Vec<Tally>> {
    servers
        .iter()
        .map(|server| {
            let log = directory(lab, server)?.join("cache.log");
            let text =
                fs::read_to_string(&log).with_context(|| format!("read {}", log.display()))?;
            Ok(Tally::of(&text))
        })
        .collect()
}

/// The number of documents in the cache of each server.
pub(super) fn held(lab: &BenchLab, servers: &[&str]) -> Result<Vec<usize>> {
    servers
        .iter()
        .map(|server| {
            let cache = directory(lab, server)?.join("cache");
            files(&cache).with_context(|| format!("count the files in {}", cache.display()))
        })
        .collect()
}

fn directory(lab: &BenchLab, host: &str) -> Result<PathBuf> {
    Ok(lab.running()?.host(host)?.directory)
}

fn files(folder: &Path) -> std::io::Result<usize> {
    fs::read_dir(folder)?.try_fold(0, |sum, entry| {
        let entry = entry?;
        Ok(sum
            + if entry.file_type()?.is_dir() {
                files(&entry.path())?
            } else {
                1
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hits_are_hits() {
        let log =
            "MISS 200 /document/1\nHIT 200 /document/1\nEXPIRED 200 /document/HIT\n- 404 /x\n";
        let tally = Tally::of(log);
        assert_eq!((tally.requests, tally.hits), (4, 1));
        let more = Tally::of(&format!("{log}HIT 200 /document/1\n"));
        assert_eq!(more.since(&tally).hit_rate(), 1.0);
        assert_eq!([tally, tally].into_iter().sum::<Tally>().requests, 8);
    }
}
