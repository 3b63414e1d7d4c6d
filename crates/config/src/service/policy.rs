//! `policy`: how a data server is chosen.

use crate::values::words::words;

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

words!(
    Policy,
    "policy",
    RoundRobin = "round-robin",
    Weighted = "weighted",
    Client = "client",
    Path = "path",
    LeastLoaded = "least-loaded",
    Lard = "lard",
    Overflow = "overflow",
);

impl Policy {
    /// Whether the policy needs the request, so that it cannot choose before the request has come.
    pub const fn needs_request(self) -> bool {
        matches!(self, Self::Path | Self::Lard)
    }
}
