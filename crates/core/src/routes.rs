//! Routes, compiled into the two tables by which the CS program finds the pool of a request.
//!
//! **The rule.** Of the routes of a service whose host pattern covers the request's host and whose
//! path is a prefix of its target, the one of the most specific host pattern is taken: an exact name
//! before a wildcard, a longer suffix before a shorter one, then any host. Within a host pattern it
//! is the one of the longest path. Hosts are compared without regard to ASCII case, without a port.
//!
//! **The program** has one look-up for the host and one for the path:
//!
//! ```text
//! Host: www.example.org:80 --hosts--> number      www.example.org, else *.example.org, *.org, else 0
//! (service, number, target) --entries, longest prefix--> pool      nothing: the service's own nodes
//! ```
//!
//! The second look-up must find what the rule finds, so a number's entries include those that it
//! inherits from less specific patterns, but none that begins with a more specific pattern's path:
//! there the rule takes the more specific one, whatever follows.
//!
//! **Conditions.** A route may ask for more than host and path: then it is taken only by requests that
//! meet its conditions ([`crate::rules`]), and others go on to the next that the rule names. The program
//! cannot tell. Its entry says so, and who takes the request if no condition is met; what is not said of
//! an entry, no request that finds it needs.
//!
//! Numbers are of host patterns, not of services: a pattern that one service names has entries of
//! every service that has routes it inherits.

mod closure;
mod host;

pub use host::{Host, NumberedHost};

use closure::{Levels, closure};
use host::Numbers;

/// Most host patterns; 0 is no pattern's number.
pub const MAX_HOSTS: usize = 63;

/// Most entries of a table.
pub const MAX_ENTRIES: usize = 8192;

/// Requests of a service that go to one of its pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route<'a> {
    /// Any number that tells services apart.
    pub service: u16,
    /// The hosts it is about.
    pub host: Host<'a>,
    /// What the request target begins with, byte by byte; no longer than the entries' keys hold.
    pub path: &'a [u8],
    /// Whether it asks for more than that.
    pub is_conditional: bool,
    /// Any number that tells the pools of the service apart.
    pub pool: u16,
}

/// The two tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteTable {
    /// Every host pattern once, by number from 1, in the order of the routes: routes that are
    /// appended leave the numbers as they are.
    pub hosts: Vec<NumberedHost>,
    /// In ascending order, no two of equal service, host and path.
    pub entries: Vec<Entry>,
}

/// What the longest prefix is looked for among.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// As in the [`Route`].
    pub service: u16,
    /// Number of a host pattern, 0 for hosts that none covers.
    pub host: u8,
    /// As in the [`Route`].
    pub path: Vec<u8>,
    /// Who takes its requests.
    pub leads: Leads,
}

/// Where the requests that find an entry go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Leads {
    /// To this pool, as in the [`Route`]; without one, to the service's own nodes.
    pub pool: Option<u16>,
    /// Unless they meet some route's conditions.
    pub has_conditions: bool,
}

/// Why routes do not fit the tables.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// More than [`MAX_HOSTS`].
    #[error(
        "the routes name {hosts} different hosts, the table of hosts holds {MAX_HOSTS}; put some \
         under one \"*.\" pattern"
    )]
    TooManyHosts {
        /// How many there are.
        hosts: usize,
    },
    /// More than [`MAX_ENTRIES`].
    #[error(
        "{routes} routes and {hosts} hosts make {entries} entries, the table of routes holds \
         {MAX_ENTRIES}, and each host repeats the routes that it inherits from \"*.\" patterns and \
         from routes without a host; use fewer of these, or fewer hosts"
    )]
    TooManyEntries {
        /// How many there are.
        entries: usize,
        /// Of how many routes.
        routes: usize,
        /// And how many host patterns.
        hosts: usize,
    },
}

impl RouteTable {
    /// The tables that do what the rule says. Of routes with equal service, host and path the first that
    /// has no conditions counts.
    ///
    /// # Errors
    /// If they do not fit.
    pub fn compile(routes: &[Route<'_>]) -> Result<Self, Error> {
        let numbers = Numbers::of(routes.iter().map(|route| route.host));
        let hosts = numbers.len();
        if hosts > MAX_HOSTS {
            return Err(Error::TooManyHosts { hosts });
        }
        let levels = Levels::of(routes, &numbers);
        let entries = closure(&levels, &numbers.chains());
        if entries.len() > MAX_ENTRIES {
            return Err(Error::TooManyEntries {
                entries: entries.len(),
                routes: routes.len(),
                hosts,
            });
        }
        Ok(Self {
            hosts: numbers.into_hosts(),
            entries: entries.into_iter().map(Entry::from).collect(),
        })
    }
}
