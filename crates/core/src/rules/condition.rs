//! Conditions: what a route asks of a request besides its host and the beginning of its path.

use regex::bytes::Regex;

use super::Request;

/// All of them must be met.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    /// On the path, up to its query, without any encoding.
    pub path: Option<Regex>,
    /// On the method.
    pub method: Option<Matcher>,
    /// On a header line with this name, whose case means nothing.
    pub headers: Vec<(String, Matcher)>,
    /// On a cookie with this name.
    pub cookies: Vec<(String, Matcher)>,
    /// On a parameter with this name, both as the client wrote them.
    pub queries: Vec<(String, Matcher)>,
}

/// A condition on a value. Of several with the same name, one that meets it will do.
#[derive(Clone, Debug)]
pub enum Matcher {
    /// It is this, byte by byte.
    Exactly(String),
    /// This is found in it.
    Regex(Regex),
}

impl Conditions {
    /// Whether every request meets them.
    pub fn is_empty(&self) -> bool {
        let Self {
            path,
            method,
            headers,
            cookies,
            queries,
        } = self;
        path.is_none()
            && method.is_none()
            && [headers, cookies, queries]
                .iter()
                .all(|list| list.is_empty())
    }

    /// Whether a request does.
    pub fn are_met(&self, request: &Request) -> bool {
        let path = |regex: &Regex| {
            let path = request.decoded_path();
            path.is_some_and(|path| regex.is_match(&path))
        };
        self.path.as_ref().is_none_or(path)
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
            Self::Regex(regex) => regex.is_match(value),
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
