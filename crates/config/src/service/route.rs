//! `[[service.route]]`: which requests a pool serves.

use std::fmt;
use std::ops::Range;

use toml::Spanned;

use crate::reading::field::{Parsed, parse, parse_table};
use crate::reading::problem::Problem;
use crate::reading::raw::RawRoute;
use crate::reading::report::Report;
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

/// The values of a route that could be read; see [`crate::sections::node::Draft`].
pub(crate) struct Draft {
    pub(crate) header: Range<usize>,
    pub(crate) host: Parsed<HostPattern>,
    pub(crate) path: Parsed<PathPrefix>,
    regex: Parsed<Expression>,
    method: Parsed<Pattern>,
    header_lines: Parsed<Vec<(String, Pattern)>>,
    cookie: Parsed<Vec<(String, Pattern)>>,
    query: Parsed<Vec<(String, Pattern)>>,
    pub(crate) alpn: Parsed<Pattern>,
    pub(crate) pool: Option<Spanned<PoolName>>,
    pub(crate) resume: Parsed<bool>,
}

impl Draft {
    pub(crate) fn parse(report: &mut Report<'_>, raw: Spanned<RawRoute>) -> Self {
        let header = raw.span();
        let raw = raw.into_inner();
        let host = parse(report, "host", raw.host, |text| text.parse());
        let path = parse(report, "path", raw.path, |text| text.parse::<PathPrefix>());
        if let Parsed::Right(path) = &path
            && let Some(doubt) = path.get_ref().doubt()
        {
            report.warning(path.span(), doubt);
        }
        let regex = parse(report, "regex", raw.regex, |text| text.parse());
        let method = parse(report, "method", raw.method, condition::method);
        let header_lines = parse_table(report, "header", raw.header, condition::named_by_token);
        let cookie = parse_table(report, "cookie", raw.cookie, condition::named_by_token);
        let query = parse_table(report, "query", raw.query, condition::named_in_query);
        let alpn = parse(report, "alpn", raw.alpn, |text| text.parse());
        let pool = parse(report, "pool", raw.pool, |text| text.parse()).required(
            report,
            header.clone(),
            || {
                Problem::new(
                    "this route leads to no pool",
                    "add pool = \"…\", the name of a [[service.pool]] of this service",
                )
            },
        );
        let resume = parse(report, "resume", raw.resume, Ok);
        Self {
            header,
            host,
            path,
            regex,
            method,
            header_lines,
            cookie,
            query,
            alpn,
            pool,
            resume,
        }
    }

    /// The keys of this route that are about requests, and where they stand in the file.
    pub(crate) fn about_requests(&self) -> impl Iterator<Item = (&'static str, Range<usize>)> {
        let keys = [
            ("path", self.path.span()),
            ("regex", self.regex.span()),
            ("method", self.method.span()),
            ("header", self.header_lines.span()),
            ("cookie", self.cookie.span()),
            ("query", self.query.span()),
        ];
        let set = |(key, span): (_, Option<_>)| span.map(|span| (key, span));
        keys.into_iter().filter_map(set)
    }

    /// The host, path and conditions of the route, if they could be read.
    pub(crate) fn matches(&self) -> Option<(HostPattern, PathPrefix, Conditions)> {
        let host = self.host.clone_or(HostPattern::Any)?;
        let path = self.path.clone_or(PathPrefix::root())?;
        let conditions = Conditions {
            regex: self.regex.clone_optional()?,
            method: self.method.clone_optional()?,
            header: self.header_lines.clone_or(Vec::new())?,
            cookie: self.cookie.clone_or(Vec::new())?,
            query: self.query.clone_or(Vec::new())?,
            alpn: self.alpn.clone_optional()?,
        };
        Some((host, path, conditions))
    }

    /// The place in the file of its path, else of its host, else of its header.
    pub(crate) fn place(&self) -> Range<usize> {
        let said = self.path.span().or(self.host.span());
        said.unwrap_or_else(|| self.header.clone())
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
