//! Conditions: what a route requires of a request besides its host and the beginning of its path.

use serde::{Deserialize, Serialize};

use super::{ClientHello, Expression, Request};

/// The conditions of a route, all of which must be met.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Conditions {
    /// A condition on the path, up to the query, without any encoding.
    pub path: Option<Expression>,
    /// A condition on the method.
    pub method: Option<Matcher>,
    /// Conditions on a header line with this name, in any case.
    pub headers: Vec<(String, Matcher)>,
    /// Conditions on a cookie with this name.
    pub cookies: Vec<(String, Matcher)>,
    /// Conditions on a query parameter with this name; name and value are compared as the client wrote them.
    pub queries: Vec<(String, Matcher)>,
    /// A condition on the protocols that a TLS client offers (ALPN).
    pub alpn: Option<Matcher>,
}

/// A condition on a value. If several values have the same name, one that meets it suffices.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Matcher {
    /// The value must be this text, byte by byte.
    Exactly(String),
    /// This expression must match somewhere in the value.
    Regex(Expression),
}

impl Conditions {
    /// Whether there are no conditions, so that every request meets them.
    pub fn is_empty(&self) -> bool {
        self.alpn.is_none() && self.are_only_about_tls()
    }

    /// Whether there are no conditions on requests.
    pub fn are_only_about_tls(&self) -> bool {
        let Self {
            path,
            method,
            headers,
            cookies,
            queries,
            alpn: _,
        } = self;
        path.is_none()
            && method.is_none()
            && [headers, cookies, queries]
                .iter()
                .all(|list| list.is_empty())
    }

    /// Whether a TLS connection that begins so meets the condition on it.
    pub fn are_met_by_tls(&self, hello: &ClientHello) -> bool {
        let offers = |alpn: &Matcher| hello.protocols().any(|name| alpn.is_met_by(name));
        self.alpn.as_ref().is_none_or(offers)
    }

    /// Whether a request meets all conditions on requests.
    pub fn are_met(&self, request: &Request) -> bool {
        let path = |expression: &Expression| {
            let path = request.decoded_path();
            path.is_some_and(|path| expression.matches(&path))
        };
        // Of a request nobody knows which protocols its client has offered.
        self.alpn.is_none()
            && self.path.as_ref().is_none_or(path)
            && (self.method.as_ref()).is_none_or(|method| method.is_met_by(request.method()))
            && all(&self.headers, |name| request.headers(name))
            && all(&self.cookies, |name| request.cookies(name))
            && all(&self.queries, |name| request.queries(name))
    }
}

impl Matcher {
    fn is_met_by(&self, value: &[u8]) -> bool {
        match self {
            Self::Exactly(text) => text.as_bytes() == value,
            Self::Regex(expression) => expression.matches(value),
        }
    }
}

fn all<'a, V: Iterator<Item = &'a [u8]>>(
    conditions: &'a [(String, Matcher)],
    values: impl Fn(&'a str) -> V,
) -> bool {
    conditions
        .iter()
        .all(|(name, matcher)| values(name).any(|value| matcher.is_met_by(value)))
}
