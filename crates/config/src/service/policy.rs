//! `policy`: how a data server is chosen.

use std::fmt;
use std::str::FromStr;

use crate::reading::problem::Problem;
use crate::service::one_of;

/// How a data server is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Each in turn.
    RoundRobin,
    /// Each in turn, as often as its weight says.
    Weighted,
    /// By the client's address, with a Maglev table.
    Client,
    /// By the path of the request, with a Maglev table.
    Path,
    /// By the load that nodes report.
    LeastLoaded,
    /// Locality-aware request distribution: by the path of the request, as far as the load allows.
    Lard,
    /// One serves until it has too much to do, and the others what is beyond that.
    Overflow,
}

const ALL: [Policy; 7] = [
    Policy::RoundRobin,
    Policy::Weighted,
    Policy::Client,
    Policy::Path,
    Policy::LeastLoaded,
    Policy::Lard,
    Policy::Overflow,
];

impl Policy {
    /// The word for it in the file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RoundRobin => "round-robin",
            Self::Weighted => "weighted",
            Self::Client => "client",
            Self::Path => "path",
            Self::LeastLoaded => "least-loaded",
            Self::Lard => "lard",
            Self::Overflow => "overflow",
        }
    }

    /// Whether it looks at the request, which must be there by then.
    pub const fn needs_request(self) -> bool {
        matches!(self, Self::Path | Self::Lard)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Policy {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        one_of("policy", text, &ALL.map(|policy| (policy.as_str(), policy)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_its_policy() {
        for policy in ALL {
            assert_eq!(policy.as_str().parse(), Ok(policy));
        }
        assert!(Policy::from_str("Path").is_err());
    }
}
