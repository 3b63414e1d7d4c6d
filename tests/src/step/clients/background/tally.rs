//! What clients have seen.

use std::fmt;

use super::stalls::{Stalls, Waits};

/// Of one client, or of several together.
#[derive(Default)]
pub struct Tally {
    /// Answers that came whole and right.
    pub done: usize,
    /// Their bytes.
    pub bytes: u64,
    pub failed: Vec<Failure>,
    /// Times within which not a byte came, of this client.
    pub waits: Waits,
    /// And of those whose tallies were added.
    stalls: Stalls,
}

/// An answer that did not come, or not as it must.
pub struct Failure {
    /// Who had the connection, and whom the request was for, as far as the client knows.
    pub servers: Vec<String>,
    /// Bytes that are not the page's, or not its server's: never right, whatever was done on purpose.
    pub wrong_bytes: bool,
    pub what: String,
}

impl Tally {
    /// Takes over what a client of this name has seen.
    pub fn add(&mut self, name: &str, other: Tally) {
        self.done += other.done;
        self.bytes += other.bytes;
        // "download 3 of /1m": its kind is what stands first.
        self.stalls
            .add(name.split(' ').next().unwrap_or_default(), other.waits);
        self.failed.extend(other.failed.into_iter().map(|one| {
            let what = format!("{name}: {}", one.what);
            Failure { what, ..one }
        }));
    }
}

impl Failure {
    /// Whether one of these servers may have been the cause. A client that has had no answer on its
    /// connection cannot know where it was.
    pub fn was_of(&self, ended: &[String]) -> bool {
        let unknown = self.servers.is_empty() && !ended.is_empty();
        unknown || self.servers.iter().any(|server| ended.contains(server))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at {})", self.what, self.servers.join(", "))
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} answers, {} MB, {} failed{}",
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
            wrong_bytes: false,
            what: String::new(),
        };
        let ended = ["ds2".to_owned()];
        assert!(failure(&["ds1", "ds2"]).was_of(&ended));
        assert!(failure(&[]).was_of(&ended), "nobody knows");
        assert!(!failure(&["ds1"]).was_of(&ended));
        assert!(!failure(&[]).was_of(&[]), "nothing may fail");
    }
}
