//! Clients over connections that stay open. Each asks for another document as soon as it has the one before.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};

use super::popularity::Popularity;
use crate::chance::Chance;
use crate::competitor::Competitor;
use crate::lab::BenchLab;
use crate::latency::Client;

/// The condition for an end: all clients together have sent so many requests, and this time is over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Enough {
    requests: u64,
    time: Duration,
}

impl Enough {
    /// An end after so many requests, however long they take.
    pub const fn requests(requests: u64) -> Enough {
        Enough {
            requests,
            time: Duration::ZERO,
        }
    }

    /// An end after this time, however many requests there are.
    pub const fn time(time: Duration) -> Enough {
        Enough { requests: 0, time }
    }
}

impl fmt::Display for Enough {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.time.is_zero() {
            write!(f, "{} requests", self.requests)
        } else {
            write!(f, "{} s", self.time.as_secs())
        }
    }
}

/// The number of answers, all of which had status 200, and the time that they took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub requests: u64,
    time: Duration,
}

impl Asked {
    /// The rate, in requests a second.
    pub fn rate(self) -> f64 {
        self.requests as f64 / self.time.as_secs_f64()
    }
}

/// The clients, whose connections are to the cluster address.
pub(super) struct Audience {
    visitors: Vec<Visitor>,
    popularity: Popularity,
}

struct Visitor {
    client: Client,
    chance: Chance,
}

impl Audience {
    /// Makes so many connections from the lab's client.
    pub fn connect(lab: &BenchLab, connections: u64, popularity: Popularity) -> Result<Audience> {
        let connect = || {
            let address = Competitor::Baton.addresses()[0];
            (0..connections)
                .map(|seed| {
                    Ok(Visitor {
                        client: Client::connect("baton", (address, 80))?,
                        chance: Chance::new(seed),
                    })
                })
                .collect::<Result<_>>()
        };
        Ok(Audience {
            visitors: lab.running()?.within("client", connect)??,
            popularity,
        })
    }

    /// Sends requests until `enough` is reached, each connection on a thread of its own. The first failure ends all.
    pub fn ask(&mut self, enough: Enough) -> Result<Asked> {
        let start = Instant::now();
        let begun = AtomicU64::new(0);
        let failed = AtomicBool::new(false);
        let is_over = || {
            begun.fetch_add(1, Ordering::Relaxed) >= enough.requests
                && start.elapsed() >= enough.time
                || failed.load(Ordering::Relaxed)
        };
        let popularity = &self.popularity;
        let requests = thread::scope(|scope| -> Result<u64> {
            let threads: Vec<_> = self
                .visitors
                .iter_mut()
                .map(|visitor| {
                    scope.spawn(|| {
                        visitor
                            .ask(popularity, is_over)
                            .inspect_err(|_| failed.store(true, Ordering::Relaxed))
                    })
                })
                .collect();
            let ends = threads.into_iter().map(thread::ScopedJoinHandle::join);
            ends.map(|end| end.map_err(|_| anyhow!("a client panicked"))?)
                .sum()
        })?;
        Ok(Asked {
            requests,
            time: start.elapsed(),
        })
    }
}

impl Visitor {
    fn ask(&mut self, popularity: &Popularity, is_over: impl Fn() -> bool) -> Result<u64> {
        let mut requests = 0;
        while !is_over() {
            let document = popularity.document(self.chance.part());
            self.client
                .request(&format!("/document/{document}"))
                .context("one of the connections of --locality")?;
            requests += 1;
        }
        Ok(requests)
    }
}
