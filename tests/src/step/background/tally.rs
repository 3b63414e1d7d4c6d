//! What clients have seen.

use std::fmt;
use std::time::Duration;

/// Of one client, or of several together.
#[derive(Default)]
pub struct Tally {
    /// Answers that came whole and right.
    pub done: usize,
    /// Those of them that another server gave than the path names.
    pub by_others: usize,
    /// Their bytes.
    pub bytes: u64,
    pub failed: Vec<Failure>,
    /// Of each answer, the longest time within which not a byte came.
    pub stalls: Vec<Duration>,
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
        self.by_others += other.by_others;
        self.bytes += other.bytes;
        self.stalls.extend(other.stalls);
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
        let mut stalls = self.stalls.clone();
        stalls.sort_unstable();
        let (longest, p99) = (stalls.last().copied(), percentile(&stalls, 99));
        write!(
            f,
            "{} answers ({} by others than named), {} MB, {} failed; stalls: longest {:.1?}, p99 {:.1?}",
            self.done,
            self.by_others,
            self.bytes >> 20,
            self.failed.len(),
            longest.unwrap_or_default(),
            p99.unwrap_or_default()
        )
    }
}

/// The least of these, in order, that so many of a hundred do not exceed.
fn percentile(sorted: &[Duration], of_hundred: usize) -> Option<Duration> {
    let rank = (sorted.len() * of_hundred).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_99th_percentile_is_a_stall_that_was_seen() {
        let stalls: Vec<Duration> = (1..=200).map(Duration::from_millis).collect();
        assert_eq!(percentile(&stalls, 99), Some(Duration::from_millis(198)));
        assert_eq!(percentile(&stalls[..1], 99), Some(Duration::from_millis(1)));
        assert_eq!(percentile(&[], 99), None);
    }

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
