//! One user of the support site, who thinks, asks and waits. The user leaves after a download and comes back as
//! another user, over a new connection.

use std::ops::AddAssign;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::connection::{Connection, Fetched};
use super::mix;
use crate::chance::Chance;

/// The period in which requests that end are counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    pub from: Instant,
    pub until: Instant,
}

/// The results of requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    /// How long each completely answered request took, including the handshake of a new connection.
    pub times: Vec<Duration>,
    /// The number of requests that had no connection, no answer, or an answer that broke off.
    pub errors: u64,
    /// The number of requests that were under way at the end.
    pub unfinished: u64,
    /// The first error.
    pub why: Option<String>,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.times.extend(other.times);
        self.errors += other.errors;
        self.unfinished += other.unfinished;
        self.why = self.why.take().or(other.why);
    }
}

/// Runs the user's session until the end of the counted period.
pub(super) fn run(address: &'static str, seed: u64, counted: Counted) -> Tally {
    let mut chance = Chance::new(seed);
    let mut connection = None;
    let mut tally = Tally::default();
    loop {
        let wait = mix::thinking(&mut chance);
        let left = counted.until.saturating_duration_since(Instant::now());
        thread::sleep(wait.min(left));
        if wait >= left {
            return tally;
        }
        let request = mix::request(&mut chance);
        let begin = Instant::now();
        let fetched = ask(&mut connection, address, request.bytes, counted.until);
        let end = Instant::now();
        let is_counted = end >= counted.from && end < counted.until;
        match fetched {
            Ok(Fetched::Whole { .. }) if is_counted => tally.times.push(end - begin),
            Ok(Fetched::Left { .. }) => tally.unfinished += 1,
            Err(error) => {
                connection = None;
                if is_counted {
                    tally.errors += 1;
                    tally.why.get_or_insert(format!("{error:#}"));
                }
            }
            Ok(Fetched::Whole { .. }) => {}
        }
        if request.is_download {
            connection = None;
        }
    }
}

fn ask(
    connection: &mut Option<Connection>,
    address: &'static str,
    bytes: u64,
    until: Instant,
) -> Result<Fetched> {
    let connection = match connection {
        Some(connection) => connection,
        none => none.insert(Connection::connect(address)?),
    };
    connection.fetch(bytes, Some(until))
}
