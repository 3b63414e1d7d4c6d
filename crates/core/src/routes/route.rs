//! A route, and an entry of the table that is made from routes.

use super::host::Host;

/// A route: the requests of a service that go to one of its pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route<'a> {
    /// Any number that tells services apart.
    pub service: u16,
    /// The hosts that the route is about.
    pub host: Host<'a>,
    /// What the request target begins with, byte by byte; no longer than the entries' keys hold.
    pub path: &'a [u8],
    /// Whether the route asks for more than host and path.
    pub is_conditional: bool,
    /// Any number that tells the pools of the service apart.
    pub pool: u16,
}

/// An entry of the table in which the program looks up the longest prefix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The service, as in the [`Route`].
    pub service: u16,
    /// The number of a host pattern; 0 for hosts that no pattern covers.
    pub host: u8,
    /// The beginning of the request target, as in the [`Route`].
    pub path: Vec<u8>,
    /// Where the requests go that find this entry.
    pub leads: Leads,
}

/// Where the requests that find an entry go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Leads {
    /// The pool that gets the requests, as in the [`Route`]; without one, the service's own nodes get them.
    pub pool: Option<u16>,
    /// Whether a request may go elsewhere because it meets some route's conditions.
    pub has_conditions: bool,
}
