//! `policy`: how a data server is chosen.

use crate::values::words::words;

words! {
    /// The rule by which a data server is chosen.
    pub enum Policy "policy" {
        /// The data servers are chosen in turn.
        RoundRobin = "round-robin",
        /// The data servers are chosen in turn, each as often as its weight says.
        Weighted = "weighted",
        /// The data server is chosen by the client's address, with a Maglev table.
        Client = "client",
        /// The data server is chosen by the path of the request, with a Maglev table.
        Path = "path",
        /// The data server is chosen by the load that nodes report.
        LeastLoaded = "least-loaded",
        /// Locality-aware request distribution: the data server is chosen by the path of the request, as far as the
        /// load allows.
        Lard = "lard",
        /// One data server, the home, serves alone up to its limits; the others serve what is beyond them.
        Overflow = "overflow",
    }
}

impl Policy {
    /// Whether the policy needs the request, so that it cannot choose before the request has come.
    pub const fn needs_request(self) -> bool {
        matches!(self, Self::Path | Self::Lard)
    }
}
