//! The closure: each host pattern's own routes, and those it inherits.

use std::collections::BTreeMap;

use super::host::Numbers;
use super::{Entry, Route};

/// A service's routes by the number of their host pattern, each with path and pool.
type ByHost<'a> = Vec<Vec<(&'a [u8], u16)>>;

/// The routes of each service.
pub(super) struct Levels<'a>(BTreeMap<u16, ByHost<'a>>);

impl<'a> Levels<'a> {
    pub(super) fn of(routes: &[Route<'a>], numbers: &Numbers) -> Self {
        let mut services = BTreeMap::new();
        for route in routes {
            let by_host: &mut ByHost<'a> = services
                .entry(route.service)
                .or_insert_with(|| vec![Vec::new(); numbers.len() + 1]);
            by_host[numbers.number(route.host)].push((route.path, route.pool));
        }
        Self(services)
    }
}

/// An [`Entry`] before anything is copied: there may be too many.
pub(super) struct Draft<'a> {
    service: u16,
    host: usize,
    path: &'a [u8],
    pool: u16,
}

impl From<Draft<'_>> for Entry {
    fn from(draft: Draft<'_>) -> Self {
        Self {
            service: draft.service,
            // A number, and they end at MAX_HOSTS.
            host: draft.host as u8,
            path: draft.path.to_owned(),
            pool: draft.pool,
        }
    }
}

/// All entries, in order; `chains` says for each host number from whom it inherits.
pub(super) fn closure<'a>(levels: &Levels<'a>, chains: &[Vec<usize>]) -> Vec<Draft<'a>> {
    let mut entries = Vec::new();
    for (&service, by_host) in &levels.0 {
        for (host, chain) in chains.iter().enumerate() {
            let paths = inherit(chain.iter().map(|&number| by_host[number].as_slice()));
            entries.extend(paths.into_iter().map(|(path, pool)| Draft {
                service,
                host,
                path,
                pool,
            }));
        }
    }
    entries
}

/// Paths and their pools, of the most specific level first. A path that begins with one of a more
/// specific level is never asked for.
fn inherit<'l, 'a: 'l>(
    levels: impl Iterator<Item = &'l [(&'a [u8], u16)]>,
) -> BTreeMap<&'a [u8], u16> {
    let mut paths: BTreeMap<&[u8], u16> = BTreeMap::new();
    for level in levels {
        let shadowed = |path: &[u8]| paths.keys().any(|shorter| path.starts_with(shorter));
        let open: Vec<_> = level.iter().filter(|(path, _)| !shadowed(path)).collect();
        for &(path, pool) in open {
            paths.entry(path).or_insert(pool);
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_a_more_specific_level_hides_all_that_begin_with_it() {
        let own: &[(&[u8], u16)] = &[(b"/a/", 1), (b"/a/b/", 2)];
        let inherited: &[(&[u8], u16)] = &[(b"/a/c/", 3), (b"/a/", 4), (b"/a", 5), (b"/", 6)];
        let last: &[(&[u8], u16)] = &[(b"/", 7), (b"/b", 8)];
        let paths = inherit([own, inherited, last].into_iter());
        let expected: [(&[u8], u16); 4] = [(b"/", 6), (b"/a", 5), (b"/a/", 1), (b"/a/b/", 2)];
        assert_eq!(paths, expected.into());
    }

    #[test]
    fn of_equal_routes_the_first_counts() {
        let own: &[(&[u8], u16)] = &[(b"/", 1), (b"/", 2)];
        assert_eq!(inherit([own].into_iter()), [(&b"/"[..], 1)].into());
    }
}
