//! What a route, a pool or a data server had to do since this node has known it by its name.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The counts come from data servers, and are at most some seconds old. What no door judges is counted by the
/// connection server. Counting goes on when the daemon is restarted or reads its configuration again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Requests: for a route or pool those that it took, for a data server those that it was to answer.
    pub requests: u64,
    /// Requests that were given to a data server and answered by another one. They are not part of `requests`.
    pub taken_back: u64,
    /// Bytes of responses, including headers, that clients have acknowledged. Bytes of a connection's last response
    /// are counted when the connection ends.
    pub bytes: u64,
    /// Requests that no data server was there to answer.
    pub unavailable: u64,
    /// Connections that went on to another data server with a request. For a data server, connections that it handed
    /// over.
    pub handovers: u64,
}

/// Writes the tally in one line.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} requests, {}", self.requests, Bytes(self.bytes))?;
        if self.unavailable > 0 {
            write!(
                f,
                ", {} not answered: no data server was available",
                self.unavailable
            )?;
        }
        if self.handovers > 0 {
            write!(f, ", {} handovers", self.handovers)?;
        }
        Ok(())
    }
}

/// A number of bytes, which is displayed in a few characters.
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KB", "MB", "GB", "TB", "PB", "EB"];
        let mut size = self.0 as f64;
        let mut unit = "B";
        for larger in UNITS {
            // A number that would be rounded up to 1000 is shown as 1 of the next unit.
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
            "12 requests, 4.1 KB, 1 not answered: no data server was available, 5 handovers"
        );
    }
}
