//! `policy`: how a data server is chosen.

use std::fmt;
use std::str::FromStr;

use crate::reading::problem::Problem;
use crate::service::one_of;

/// The rule by which a data server is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// The data servers are chosen in turn.
    RoundRobin,
    /// The data servers are chosen in turn, each as often as its weight says.
    Weighted,
    /// The data server is chosen by the client's address, with a Maglev table.
    Client,
    /// The data server is chosen by the path of the request, with a Maglev table.
    Path,
    /// The data server is chosen by the load that nodes report.
    LeastLoaded,
    /// Locality-aware request distribution: the data server is chosen by the path of the request, as far as the load
    /// allows.
    Lard,
    /// One data server, the home, serves alone up to its limits; the others serve what is beyond them.
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
    /// The name of the policy in the file.
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

    /// Whether the policy needs the request, so that it cannot choose before the request has come.
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
