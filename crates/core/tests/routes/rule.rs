//! The rule in plain code: it looks at every route for every request.

use baton_core::routes::{Host, Route};

/// Returns the pool of the request. Of equally good routes the first one counts.
pub fn pool(routes: &[Route<'_>], service: u16, host: Option<&str>, target: &[u8]) -> Option<u16> {
    let name = host.unwrap_or("").split(':').next()?.to_lowercase();
    let mut best: Option<((usize, usize), u16)> = None;
    for route in routes {
        let Some(specific) = specific(route.host, &name) else {
            continue;
        };
        if route.service != service || !target.starts_with(route.path) {
            continue;
        }
        let rank = (specific, route.path.len());
        if best.is_none_or(|(best, _)| rank > best) {
            best = Some((rank, route.pool));
        }
    }
    best.map(|(_, pool)| pool)
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
