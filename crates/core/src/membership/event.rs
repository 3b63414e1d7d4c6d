//! What membership tells its owner.

use baton_wire::Endpoint;

/// A change that is to be logged or to be put into the choices map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The node is heard, for the first time or again.
    CameUp {
        /// The node's name.
        node: String,
    },
    /// The node was not heard for as long as `silence`, or never since the start.
    WentSilent {
        /// The node's name.
        node: String,
    },
    /// The node says that its server for the service answers, which it did not say before.
    Passing {
        /// The node's name.
        node: String,
        /// The service's name.
        service: String,
    },
    /// The node says that its server for the service does not answer.
    Failing {
        /// The node's name.
        node: String,
        /// The service's name.
        service: String,
    },
    /// The node says that it wants no new requests.
    Draining {
        /// The node's name.
        node: String,
    },
    /// The node says that it wants new requests again.
    Undrained {
        /// The node's name.
        node: String,
    },
    /// The service has other usable data servers than before: choose anew. This event comes for every service
    /// once after the start.
    UsableChanged {
        /// The service's address and port.
        at: Endpoint,
    },
}

/// What became of a HELLO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HelloOutcome {
    /// The HELLO was accepted.
    Accepted,
    /// The HELLO was ignored: an earlier run of the daemon sent it, or a later HELLO came before it.
    Outdated,
    /// The HELLO was ignored: no data server of this cluster has the address that it came from.
    FromStranger,
}
