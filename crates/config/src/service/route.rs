//! `[[service.route]]`: which requests a pool serves.

use std::fmt;
use std::ops::Range;

use crate::reading::problem::Problem;
use crate::reading::report::Report;
use crate::reading::schema::keys;
use crate::reading::value::{entries, plain, text, value};
use crate::service::condition::{self, Conditions, Expression, Pattern};
use crate::service::host::HostPattern;
use crate::service::path::PathPrefix;
use crate::values::name::PoolName;

/// A route: which requests go to a pool. Of several routes that match, those with the most specific host
/// count, of these the ones with the longest path, and of these the first one with conditions, or else the
/// one without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The hosts that the route matches.
    pub host: HostPattern,
    /// The prefix that the request target must have.
    pub path: PathPrefix,
    /// The other conditions that the request must meet.
    pub conditions: Conditions,
    /// The index of the pool in the service's `pools`.
    pub pool: usize,
    /// Whether a response to a request of this route goes on from another data server if its own dies. The default is
    /// the value of the service.
    pub resume: bool,
}

/// Displays host and path, and what a TLS client must offer: what people call the route.
impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.conditions.alpn {
            None => write!(f, "{}{}", self.host, self.path),
            Some(alpn) => write!(f, "{}{} alpn {alpn}", self.host, self.path),
        }
    }
}

keys! {
    /// A route takes the requests for its host and path, unless another route of this service is more specific: an
    /// exact host is more specific than a "*." one, a longer suffix than a shorter one, and no host is the least
    /// specific; of routes with the same host, the one with the longest path is. The order of routes has no meaning,
    /// except for those with conditions and the same host and path: they are tried in turn, before the one without.
    ///
    /// A route with conditions (`regex` to `alpn`) takes a request only if the request meets all of them. Otherwise the
    /// next route is tried. The daemon judges conditions, and only for requests that match the route's host and path,
    /// so give the route a path. It judges the whole head of the request.
    ///
    /// Names are as clients write them (case is ignored in `header`). If there are several values, one must match. A
    /// value is "text", for exactly that text, or "~" and a regular expression that must occur in it. "~" alone only
    /// requires that it exists. In TOML '…' keeps backslashes.
    ///
    /// While no daemon runs, nobody can judge whether a request meets the conditions, and such requests wait.
    Keys "[[service.route]]", lacks "this route leads to no" {
        /// default: any. A name, or "*." and a suffix, which means every name below it, not the suffix itself. At most
        /// 63 bytes; no port. Case is ignored, and so is a dot at the end of the host that a client sends
        host: HostPattern = text, example "*.example.org";
        /// The beginning of the request's path as servers read it: escapes are decoded, several slashes count as one,
        /// "." and ".." are resolved. So it also means //images/, /x/../images/ and /%69mages/, and /images%2Fa, as in
        /// nginx. "\", ";" and the case of letters are taken literally. A path that servers refuse, with ".." above the
        /// root for instance, is answered with 400. A query may follow, as clients send it. At most 120 bytes; write
        /// characters beyond ASCII percent-encoded, and %3F for a ? in a path
        path: PathPrefix = text, default "/", example "/images/";
        /// the path up to its query, as servers read it (see path), without escapes
        regex: Expression = text, example "\\.(jpe?g|png)$";
        /// or "POST"
        method: Pattern = value(condition::method), example "~^(GET|HEAD)$";
        header: Vec<(String, Pattern)> = entries(condition::named_by_token), default {},
            example { X-Beta = "1", User-Agent = "~(?i)mobile" };
        cookie: Vec<(String, Pattern)> = entries(condition::named_by_token), default {}, example { group = "b" };
        /// parameters, as they are written in the target
        query: Vec<(String, Pattern)> = entries(condition::named_in_query), default {},
            example { version = "~^2", debug = "~" };
        /// With protocol = "tls" there is one condition, `alpn`, on the protocols that a client offers, of which one
        /// must match:
        ///     alpn = "acme-tls/1"
        alpn: Pattern = text;
        /// a pool of this service
        pool: PoolName = text, required "\"…\", the name of a [[service.pool]] of this service", example "images";
        /// default: that of the service (above)
        resume: bool = plain, example false;
    }
}

impl Keys {
    /// Warns of a path that probably does not mean what its writer wanted.
    pub(crate) fn check(&self, report: &mut Report<'_>) {
        if let Some(Problem { what, remedy }) = self.path.get().and_then(PathPrefix::doubt) {
            report.warning(self.path.span(), what, remedy);
        }
    }

    /// The keys of this route that are about requests, and where they stand in the file.
    pub(crate) fn about_requests(&self) -> impl Iterator<Item = (&'static str, Range<usize>)> {
        let keys = [
            ("path", self.path.span()),
            ("regex", self.regex.span()),
            ("method", self.method.span()),
            ("header", self.header.span()),
            ("cookie", self.cookie.span()),
            ("query", self.query.span()),
        ];
        let set = |(key, span): (_, Option<_>)| span.map(|span| (key, span));
        keys.into_iter().filter_map(set)
    }

    /// The host, path and conditions of the route, if they could be read.
    pub(crate) fn matches(&self) -> Option<(HostPattern, PathPrefix, Conditions)> {
        let conditions = Conditions {
            regex: self.regex.clone().optional()?,
            method: self.method.clone().optional()?,
            header: self.header.get()?.clone(),
            cookie: self.cookie.get()?.clone(),
            query: self.query.get()?.clone(),
            alpn: self.alpn.clone().optional()?,
        };
        let host = self.host.clone().or(HostPattern::Any)?;
        Some((host, self.path.get()?.clone(), conditions))
    }

    /// The place in the file of its path, else of its host, else of its header.
    pub(crate) fn place(&self) -> Range<usize> {
        let said = self.path.span().or(self.host.span());
        said.unwrap_or_else(|| self.at.clone())
    }

    /// The route, if all of it could be read; `pool` is the index of the pool it names, `resume` what its service says.
    pub(crate) fn finish(self, pool: Option<usize>, resume: bool) -> Option<Route> {
        let (host, path, conditions) = self.matches()?;
        Some(Route {
            host,
            path,
            conditions,
            pool: pool?,
            resume: self.resume.or(resume)?,
        })
    }
}
