//! Which data servers may get a service's new connections.

use std::num::NonZeroU8;

use baton_wire::Address;

/// The data servers that may get a service's new connections, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usable {
    /// The usable servers, in the order of the configuration.
    pub servers: Vec<UsableServer>,
    /// By which rule these servers are usable.
    pub basis: Basis,
    /// The servers that do not fail but are not heard, while others are heard.
    unheard: Vec<UsableServer>,
}

/// A data server that may get new connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsableServer {
    /// The name of the data server's node.
    pub name: String,
    /// The data server's own address.
    pub address: Address,
    /// The data server's share of new connections.
    pub weight: NonZeroU8,
}

/// The rule by which servers are usable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Basis {
    /// The servers are heard and do not fail.
    Heard,
    /// No server is both heard and not failing, so all that do not fail are used unheard.
    Unheard,
    /// No server is usable: all fail, drain, are dead, or are configured with weight 0.
    Nobody,
}

impl Usable {
    /// Makes the usable ones of `candidates`, each with whether it is heard: those heard, or all if none is.
    pub(super) fn of(candidates: Vec<(bool, UsableServer)>) -> Self {
        let (heard, unheard): (Vec<_>, Vec<_>) =
            candidates.into_iter().partition(|(heard, _)| *heard);
        let servers =
            |some: Vec<(bool, UsableServer)>| some.into_iter().map(|(_, it)| it).collect();
        let (heard, unheard): (Vec<_>, Vec<_>) = (servers(heard), servers(unheard));
        match (heard.is_empty(), unheard.is_empty()) {
            (false, _) => Self {
                servers: heard,
                basis: Basis::Heard,
                unheard,
            },
            (true, false) => Self {
                servers: unheard,
                basis: Basis::Unheard,
                unheard: Vec::new(),
            },
            (true, true) => Self {
                servers: Vec::new(),
                basis: Basis::Nobody,
                unheard: Vec::new(),
            },
        }
    }

    /// The usable servers of a pool by the same rule: its members that are heard, or all of its members if none
    /// is.
    pub fn among<'a>(
        &'a self,
        is_member: impl Fn(&UsableServer) -> bool + 'a,
    ) -> impl Iterator<Item = &'a UsableServer> {
        let heard = self.servers.iter().any(&is_member);
        let from = if heard { &self.servers } else { &self.unheard };
        from.iter().filter(move |server| is_member(server))
    }
}
