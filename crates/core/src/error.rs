//! What can be wrong with a cluster as it is configured.

use baton_wire::{Address, Endpoint};

/// Why a configured cluster makes no sense, or does not fit the programs' maps. Nothing has
/// changed when one is returned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Two nodes have the same name.
    #[error("two nodes are called {name}; give each its own name")]
    SameName {
        /// The name that both nodes have.
        name: String,
    },
    /// Two nodes have the same address.
    #[error("nodes {first} and {second} both have the address {address}; each needs its own")]
    SameAddress {
        /// The node that was given first.
        first: String,
        /// The one that was given second.
        second: String,
        /// The address that both nodes have.
        address: Address,
    },
    /// Two services have the same address and port.
    #[error("services {first} and {second} are both at {at}; change the address or port of one")]
    SameService {
        /// The service that was given first.
        first: String,
        /// The one that was given second.
        second: String,
        /// The address and port that both services have.
        at: Endpoint,
    },
    /// A service names a node that does not exist.
    #[error("service {service} names the node {node}, which is not a configured data server")]
    NoSuchNode {
        /// The name of the service.
        service: String,
        /// The name of the node that does not exist.
        node: String,
    },
    /// There are more data servers than the map holds, counting those whose connections may still live.
    #[error(
        "no room for the data server {address}: all {slots} places are taken, or were until less \
         than {quarantine:?} ago; remove nodes, or wait"
    )]
    NoSlot {
        /// The data server that gets no slot.
        address: Address,
        /// How many slots there are.
        slots: usize,
        /// How long a slot stays empty after it was given up.
        quarantine: std::time::Duration,
    },
}
