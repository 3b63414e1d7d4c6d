//! Rules: they find the pool of a request by all that it says, where host and path alone do not decide.
//!
//! The order is that of [`crate::routes`], and a route with conditions is taken only by a request that meets all
//! of them. Of routes with the same host pattern and path, those with conditions are asked first, in the order
//! in which they were given.
//!
//! Requests are judged here if their entry in the table of routes says so, or if the program cannot be sure to
//! read them as servers do. Each is judged by its first segment: a condition on something that this segment does
//! not hold is not met.

mod bad_request;
mod client_hello;
mod condition;
mod expression;
mod framing;
mod header;
mod request;
mod target;

pub use bad_request::BadRequest;
pub use client_hello::ClientHello;
pub use condition::{Conditions, Matcher};
pub use expression::Expression;
pub use framing::{Body, head_length};
pub use request::Request;

use std::{cmp::Reverse, collections::BTreeMap};

use serde::{Deserialize, Serialize};

use crate::routes::{Host, Route};

/// The routes of every service, in the order in which they are asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Rules(BTreeMap<u16, Vec<Rule>>);

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Rule {
    host: Pattern,
    path: Vec<u8>,
    conditions: Conditions,
    pool: u16,
}

/// An owned [`Host`] in lower case. Patterns are ordered from the least specific to the most; two that cover the
/// same name are never equally specific.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Pattern {
    Any,
    Below { length: usize, name: String },
    Name(String),
}

impl Rules {
    /// Puts routes, each with its conditions, in the order in which they are asked.
    pub fn new<'a>(routes: impl IntoIterator<Item = (Route<'a>, Conditions)>) -> Self {
        let mut services: BTreeMap<u16, Vec<Rule>> = BTreeMap::new();
        for (route, conditions) in routes {
            services.entry(route.service).or_default().push(Rule {
                host: route.host.into(),
                path: route.path.to_owned(),
                conditions,
                pool: route.pool,
            });
        }
        for rules in services.values_mut() {
            // The sort is stable: equal rules stay in the order in which they were given.
            rules.sort_by_cached_key(|rule| {
                let plain = rule.conditions.is_empty();
                (Reverse(rule.host.clone()), Reverse(rule.path.len()), plain)
            });
        }
        Self(services)
    }

    /// The pool of a request; without one, the service's own nodes answer it.
    pub fn pool(&self, service: u16, request: &Request) -> Option<u16> {
        self.first(service, request.host(), |rule| {
            request.target().starts_with(&rule.path) && rule.conditions.are_met(request)
        })
    }

    /// The pool of a TLS connection that begins so; without one, the service's own nodes have it.
    pub fn pool_of_tls(&self, service: u16, hello: &ClientHello) -> Option<u16> {
        self.first(service, hello.name(), |rule| {
            rule.is_decided_by_tls() && rule.conditions.are_met_by_tls(hello)
        })
    }

    fn first(&self, service: u16, host: &str, takes: impl Fn(&Rule) -> bool) -> Option<u16> {
        let mut rules = self.0.get(&service)?.iter();
        let first = rules.find(|rule| rule.host.covers(host) && takes(rule));
        first.map(|rule| rule.pool)
    }
}

impl Rule {
    /// Whether a ClientHello says all that the rule asks for.
    fn is_decided_by_tls(&self) -> bool {
        self.path == b"/" && self.conditions.are_only_about_tls()
    }
}

impl Pattern {
    fn covers(&self, host: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Name(name) => name == host,
            Self::Below { name, .. } => {
                let above = host.strip_suffix(name.as_str());
                above.is_some_and(|below| below.ends_with('.'))
            }
        }
    }
}

impl From<Host<'_>> for Pattern {
    fn from(host: Host<'_>) -> Self {
        match host {
            Host::Any => Self::Any,
            Host::Name(name) => Self::Name(name.to_ascii_lowercase()),
            Host::Below(name) => Self::Below {
                length: name.len(),
                name: name.to_ascii_lowercase(),
            },
        }
    }
}
