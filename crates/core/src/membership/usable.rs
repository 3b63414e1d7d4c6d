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
    /// Those that do not fail and are not heard, while others are.
    unheard: Vec<UsableServer>,
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

    /// Those of a pool by the same rule: its members that are heard, or else all of its members.
    pub fn among<'a>(
        &'a self,
        is_member: impl Fn(&UsableServer) -> bool + 'a,
    ) -> impl Iterator<Item = &'a UsableServer> {
        let heard = self.servers.iter().any(&is_member);
        let from = if heard { &self.servers } else { &self.unheard };
        from.iter().filter(move |server| is_member(server))
    }
}
