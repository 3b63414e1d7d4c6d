//! What can be wrong with a cluster as it is configured.

use baton_wire::{Address, Endpoint};

/// Why a configured cluster makes no sense, or does not fit the programs' maps. Nothing has
/// changed when one is returned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Two nodes of one name.
    #[error("two nodes are called {name}; give each its own name")]
    SameName {
        /// The name.
        name: String,
    },
    /// Two nodes of one address.
    #[error("nodes {first} and {second} both have the address {address}; each needs its own")]
    SameAddress {
        /// The node that had it first.
        first: String,
        /// The other.
        second: String,
        /// The address.
        address: Address,
    },
    /// Two services at one address and port.
    #[error("services {first} and {second} are both at {at}; change the address or port of one")]
    SameService {
        /// The service that was there first.
        first: String,
        /// The other.
        second: String,
        /// Where both are.
        at: Endpoint,
    },
    /// A service names a node that does not exist.
    #[error("service {service} names the node {node}, which is not a configured data server")]
    NoSuchNode {
        /// The service.
        service: String,
        /// The node it names.
        node: String,
    },
    /// More data servers than the map holds, counting those whose connections may still live.
    #[error(
        "no room for the data server {address}: all {slots} places are taken, or were until less \
         than {quarantine:?} ago; remove nodes, or wait"
    )]
    NoSlot {
        /// The data server.
        address: Address,
        /// How many places there are.
        slots: usize,
        /// How long a place stays empty.
        quarantine: std::time::Duration,
    },
}
