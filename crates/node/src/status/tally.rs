//! What a route, a pool or a data server had to do, since it has its name here.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Counted by data servers, whose counts are at most some seconds old, and of what no door judges by the connection server. A daemon
/// that is restarted or reads its configuration again goes on counting.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Requests: for a route or pool those that it took, for a data server those that it was to answer.
    pub requests: u64,
    /// Requests that a data server was given and another one answered. Not among `requests`.
    pub taken_back: u64,
    /// Bytes of responses that clients have acknowledged, headers and all. Those of a connection's last
    /// response are counted when it ends.
    pub bytes: u64,
    /// Requests that nobody was there to answer.
    pub unavailable: u64,
    /// Connections that have gone on to another data server with a request; for a data server those that it has let go.
    pub handovers: u64,
}

/// In one line.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} requests, {}", self.requests, Bytes(self.bytes))?;
        if self.unavailable > 0 {
            write!(f, ", {} not answered: nobody was there", self.unavailable)?;
        }
        if self.handovers > 0 {
            write!(f, ", {} handovers", self.handovers)?;
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
        tally.handovers = 5;
        assert_eq!(
            tally.to_string(),
            "12 requests, 4.1 KB, 1 not answered: nobody was there, 5 handovers"
        );
    }
}
