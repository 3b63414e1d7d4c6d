//! What membership tells its owner.

use baton_wire::Endpoint;

/// A change, for the log and for the choices map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The node is heard, for the first time or again.
    CameUp {
        /// Its name.
        node: String,
    },
    /// The node was not heard for as long as `silence`, or never since the start.
    WentSilent {
        /// Its name.
        node: String,
    },
    /// The node says that its server for the service answers; before it said otherwise or nothing.
    Passing {
        /// Its name.
        node: String,
        /// The service's name.
        service: String,
    },
    /// The node says that its server for the service does not answer.
    Failing {
        /// Its name.
        node: String,
        /// The service's name.
        service: String,
    },
    /// The node says that it wants no new requests.
    Draining {
        /// Its name.
        node: String,
    },
    /// It says that it wants them again.
    Undrained {
        /// Its name.
        node: String,
    },
    /// The usable data servers of the service are others than before: choose anew. Said of every
    /// service once after the start.
    UsableChanged {
        /// Where the service is.
        at: Endpoint,
    },
}

/// What became of a HELLO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// It was taken for what it says.
    Taken,
    /// Ignored: an earlier life of the daemon sent it, or it was overtaken by a later one.
    Outdated,
    /// Ignored: no data server of this cluster has the address that it came from.
    FromStranger,
}
