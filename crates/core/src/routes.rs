//! Routes, compiled into the two tables by which the CS program finds the pool of a request.
//!
//! **The rule.** A route of a service fits a request if its host pattern covers the request's host and its path
//! is a prefix of the request's target. Of the routes that fit, the one with the most specific host pattern is
//! taken: an exact name before a wildcard, a longer suffix before a shorter one, then any host. Within a host
//! pattern it is the one with the longest path. Hosts are compared without regard to ASCII case and without a
//! port.
//!
//! **The program** has one look-up for the host and one for the path:
//!
//! ```text
//! Host: www.example.org:80 --hosts--> number      www.example.org, else *.example.org, *.org, else 0
//! (service, number, target) --entries, longest prefix--> pool      nothing: the service's own nodes
//! ```
//!
//! The second look-up must find what the rule finds. So a number's entries include those that it inherits from
//! less specific patterns, but none whose path begins with the path of a more specific pattern: there the rule
//! takes the more specific route, whatever follows.
//!
//! **Conditions.** A route may ask for more than host and path. Then only requests that meet its conditions
//! ([`crate::rules`]) take it, and others go on to the next route that the rule names. The program cannot check
//! conditions. Its entry says that there are some, and which pool takes the request if none is met. An entry
//! that does not mention conditions is found only by requests for which none has to be checked.
//!
//! Numbers belong to host patterns, not to services: a pattern that one service names has entries of every
//! service whose routes it inherits.

mod closure;
mod host;
mod route;

pub use host::{Host, NumberedHost};
pub use route::{Entry, Leads, Route};

use closure::{Levels, closure};
use host::Numbers;

/// The greatest number of host patterns. They are numbered from 1, because 0 is no pattern's number.
pub const MAX_HOSTS: usize = 63;

/// The greatest number of entries of a table.
pub const MAX_ENTRIES: usize = 8192;

/// The two tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteTable {
    /// Every host pattern once, by number from 1, in the order of the routes. Appending routes leaves the
    /// numbers as they are.
    pub hosts: Vec<NumberedHost>,
    /// The entries in ascending order; no two have the same service, host and path.
    pub entries: Vec<Entry>,
}

/// Why routes do not fit the tables.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The routes have more than [`MAX_HOSTS`] host patterns.
    #[error(
        "the routes name {hosts} different hosts, the table of hosts holds {MAX_HOSTS}; put some \
         under one \"*.\" pattern"
    )]
    TooManyHosts {
        /// How many host patterns there are.
        hosts: usize,
    },
    /// The routes make more than [`MAX_ENTRIES`] entries.
    #[error(
        "{routes} routes and {hosts} hosts make {entries} entries, the table of routes holds \
         {MAX_ENTRIES}, and each host repeats the routes that it inherits from \"*.\" patterns and \
         from routes without a host; use fewer of these, or fewer hosts"
    )]
    TooManyEntries {
        /// How many entries there are.
        entries: usize,
        /// How many routes make these entries.
        routes: usize,
        /// How many host patterns the routes have.
        hosts: usize,
    },
}

impl RouteTable {
    /// Makes the tables that do what the rule says. Of routes with the same service, host and path, the first
    /// one without conditions counts.
    ///
    /// # Errors
    /// Says which table the routes do not fit into.
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
