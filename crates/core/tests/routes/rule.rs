//! The rule in plain code: it looks at every route for every request.

use baton_core::routes::{Host, Route};

/// A route, and the only method that it takes. `None`: it takes every method.
pub type OfMethod<'a> = (Route<'a>, Option<&'a str>);

/// Returns the pool of a request with this method, and whether its route has a condition. The best of all routes that
/// match counts, and of equally good ones the first.
pub fn best(
    routes: &[OfMethod<'_>],
    service: u16,
    method: Option<&str>,
    host: Option<&str>,
    target: &[u8],
) -> Option<(u16, bool)> {
    let name = host.unwrap_or("").split(':').next()?.to_lowercase();
    let mut best: Option<((usize, usize, bool), u16)> = None;
    for (route, wanted) in routes {
        let Some(specific) = specific(route.host, &name) else {
            continue;
        };
        let met = wanted.is_none() || *wanted == method;
        if route.service != service || !target.starts_with(route.path) || !met {
            continue;
        }
        let rank = (specific, route.path.len(), wanted.is_some());
        if best.is_none_or(|(best, _)| rank > best) {
            best = Some((rank, route.pool));
        }
    }
    best.map(|((_, _, conditional), pool)| (pool, conditional))
}

/// Returns the pool of a request, where no route has a condition.
pub fn pool(routes: &[Route<'_>], service: u16, host: Option<&str>, target: &[u8]) -> Option<u16> {
    let routes: Vec<_> = routes.iter().map(|route| (*route, None)).collect();
    best(&routes, service, None, host, target).map(|(pool, _)| pool)
}

/// Returns how specific the pattern is among the patterns that match this name. `None`: it does not match.
fn specific(pattern: Host<'_>, name: &str) -> Option<usize> {
    match pattern {
        Host::Any => Some(0),
        Host::Below(suffix) => name
            .ends_with(&format!(".{}", suffix.to_lowercase()))
            .then_some(1 + suffix.len()),
        Host::Name(exact) => (exact.to_lowercase() == name).then_some(usize::MAX),
    }
}
