//! What a route, a pool or a data server had to do, since it has its name here.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

/// Counted by the connection server, and where owners route by data servers, whose counts are at most some seconds old. A daemon
/// that is restarted or reads its configuration again goes on counting.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Requests: for a route or pool those that it took, for a data server those that it was to answer.
    /// What a pinned connection asks for after its first request is seen only where owners route; its bytes are.
    pub requests: u64,
    /// Requests that a data server was given and another one answered. Not among `requests`.
    pub taken_back: u64,
    /// Bytes of responses that clients have acknowledged, headers and all. Those of a connection's last
    /// response are counted when it ends, or, but where owners route, is quiet for some seconds.
    pub bytes: u64,
    /// Requests that nobody was there to answer.
    pub unavailable: u64,
    /// Requests that could not go to their pool: their connections were ended before any server saw them. By reason.
    #[serde(default)]
    pub closed: BTreeMap<String, u64>,
    /// Connections that were to move for a request; for a data server those that it was asked to let go.
    pub handovers: Handovers,
}

/// What became of handovers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handovers {
    /// Asked for.
    pub tried: u64,
    /// Of those, neither refused nor found not to have happened.
    pub made: u64,
    /// The next owner did not have the connection: a message was lost.
    pub none: u64,
    /// Refused by the owner, by reason.
    pub kept: BTreeMap<String, u64>,
}

/// In one line.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} requests, {}", self.requests, Bytes(self.bytes))?;
        if self.unavailable > 0 {
            write!(f, ", {} not answered: nobody was there", self.unavailable)?;
        }
        for (reason, count) in &self.closed {
            write!(f, ", {count} not answered: could not go there ({reason})")?;
        }
        let handovers = &self.handovers;
        if handovers.tried > 0 {
            write!(
                f,
                ", handovers {}: {} made",
                handovers.tried, handovers.made
            )?;
        }
        if handovers.none > 0 {
            write!(f, ", {} lost", handovers.none)?;
        }
        for (reason, count) in &handovers.kept {
            write!(f, ", {count} kept ({reason})")?;
        }
        Ok(())
    }
}

/// A number of bytes, in a few letters.
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KB", "MB", "GB", "TB", "PB", "EB"];
        let mut size = self.0 as f64;
        let mut unit = "B";
        for larger in UNITS {
            // What would be rounded up to 1000 is one of the next.
            if size < 999.5 {
                break;
            }
            size /= 1000.0;
            unit = larger;
        }
        if unit == "B" || size >= 99.5 {
            f.pad(&format!("{size:.0} {unit}"))
        } else {
            f.pad(&format!("{size:.1} {unit}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_in_a_few_letters() {
        let shown = [
            0,
            999,
            1000,
            1_550,
            99_400,
            99_960,
            999_499,
            999_500,
            4 << 30,
        ];
        let shown = shown.map(|bytes| Bytes(bytes).to_string());
        let expected = [
            "0 B", "999 B", "1.0 KB", "1.6 KB", "99.4 KB", "100 KB", "999 KB", "1.0 MB", "4.3 GB",
        ];
        assert_eq!(shown, expected);
        assert_eq!(Bytes(u64::MAX).to_string(), "18.4 EB");
        assert_eq!(format!("{:>8}", Bytes(1)), "     1 B");
    }

    #[test]
    fn a_line_says_what_happened() {
        let mut tally = Tally {
            requests: 12,
            bytes: 4096,
            ..Tally::default()
        };
        assert_eq!(tally.to_string(), "12 requests, 4.1 KB");
        tally.unavailable = 1;
        tally.closed = [("unmoved".to_owned(), 3)].into();
        tally.handovers = Handovers {
            tried: 5,
            made: 2,
            none: 1,
            kept: [("unread".to_owned(), 2)].into(),
        };
        assert_eq!(
            tally.to_string(),
            "12 requests, 4.1 KB, 1 not answered: nobody was there, \
             3 not answered: could not go there (unmoved), handovers 5: 2 made, 1 lost, \
             2 kept (unread)"
        );
    }
}
