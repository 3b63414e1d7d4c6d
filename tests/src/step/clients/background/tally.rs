//! What clients saw: right answers, failures, and how long they waited.

use std::fmt;

use super::stalls::{Stalls, Waits};

/// The results of one client, or of several together.
#[derive(Default)]
pub struct Tally {
    /// The number of complete and right answers.
    pub done: usize,
    /// The number of bytes of these answers.
    pub bytes: u64,
    pub failed: Vec<Failure>,
    /// The longest times without a byte, of this client.
    pub waits: Waits,
    /// The waits of the clients whose tallies were added.
    stalls: Stalls,
}

/// An answer that did not come, or was not as it must be.
pub struct Failure {
    /// The data server that had the connection, and the one that the request was for, as far as the client knows.
    pub servers: Vec<String>,
    /// Whether this is never allowed, whatever was done on purpose: bytes differ from the page's or come from a wrong
    /// server, or the test itself failed.
    pub never_allowed: bool,
    pub what: String,
}

impl Tally {
    /// Adds the results of a client of this name.
    pub fn add(&mut self, name: &str, other: Tally) {
        self.done += other.done;
        self.bytes += other.bytes;
        // The kind of a client is the first word of its name, as in "download 3 of /1m".
        self.stalls
            .add(name.split(' ').next().unwrap_or_default(), other.waits);
        self.failed.extend(other.failed.into_iter().map(|one| {
            let what = format!("{name}: {}", one.what);
            Failure { what, ..one }
        }));
    }
}

impl Failure {
    /// Whether one of these servers may have been the cause. A client that has had no answer on its connection cannot
    /// know which server had it.
    pub fn was_of(&self, ended: &[String]) -> bool {
        let unknown = self.servers.is_empty() && !ended.is_empty();
        unknown || self.servers.iter().any(|server| ended.contains(server))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.servers[..] {
            [] => write!(f, "{} (server unknown)", self.what),
            all => write!(f, "{} (at {})", self.what, all.join(", ")),
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} answers, {} MiB, {} failed{}",
            self.done,
            self.bytes >> 20,
            self.failed.len(),
            self.stalls,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_elsewhere_is_none_of_a_server_that_was_ended() {
        let failure = |servers: &[&str]| Failure {
            servers: servers.iter().map(|one| (*one).to_owned()).collect(),
            never_allowed: false,
            what: String::new(),
        };
        let ended = ["ds2".to_owned()];
        assert!(failure(&["ds1", "ds2"]).was_of(&ended));
        assert!(failure(&[]).was_of(&ended), "nobody knows");
        assert!(!failure(&["ds1"]).was_of(&ended));
        assert!(!failure(&[]).was_of(&[]), "nothing may fail");
    }
}
