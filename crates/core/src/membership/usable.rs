//! Which data servers may get a service's new connections.

use std::num::NonZeroU8;

use baton_wire::Address;

/// The data servers that may get a service's new connections, and why they.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usable {
    /// In the order of the configuration.
    pub servers: Vec<UsableServer>,
    /// Why they.
    pub basis: Basis,
}

/// A data server that may get new connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsableServer {
    /// Its node's name.
    pub name: String,
    /// Its own address.
    pub address: Address,
    /// Its share.
    pub weight: NonZeroU8,
}

/// By which rule servers are usable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Basis {
    /// They are heard, and do not fail.
    Heard,
    /// None that does not fail is heard, so all that do not fail are used unheard.
    Unheard,
    /// There is none: all fail, drain, or are configured with weight 0.
    Nobody,
}

impl Usable {
    /// Of candidates, each with whether it is heard: those heard, or else all.
    pub(super) fn of(candidates: Vec<(bool, UsableServer)>) -> Self {
        let basis = match candidates.iter().any(|(heard, _)| *heard) {
            _ if candidates.is_empty() => Basis::Nobody,
            true => Basis::Heard,
            false => Basis::Unheard,
        };
        let usable = |&(heard, _): &(bool, UsableServer)| heard || basis == Basis::Unheard;
        let servers = candidates
            .into_iter()
            .filter(usable)
            .map(|(_, server)| server)
            .collect();
        Self { servers, basis }
    }
}
