//! The closure of the routes: each host pattern's own ones, and those that it inherits.

use std::collections::BTreeMap;

use super::host::Numbers;
use super::route::{Entry, Leads, Route};

/// A service's routes by the number of their host pattern.
type ByHost<'a> = Vec<Vec<Place<'a>>>;

/// A route, without its service and its host pattern.
#[derive(Clone, Copy)]
struct Place<'a> {
    path: &'a [u8],
    is_conditional: bool,
    pool: u16,
}

/// The routes of each service.
pub(super) struct Levels<'a>(BTreeMap<u16, ByHost<'a>>);

impl<'a> Levels<'a> {
    pub(super) fn of(routes: &[Route<'a>], numbers: &Numbers) -> Self {
        let mut services = BTreeMap::new();
        for route in routes {
            let by_host: &mut ByHost<'a> = services
                .entry(route.service)
                .or_insert_with(|| vec![Vec::new(); numbers.len() + 1]);
            by_host[numbers.number(route.host)].push(Place {
                path: route.path,
                is_conditional: route.is_conditional,
                pool: route.pool,
            });
        }
        Self(services)
    }
}

/// An [`Entry`] that borrows its path: nothing is copied yet, because there may be too many entries.
pub(super) struct Draft<'a> {
    service: u16,
    host: usize,
    path: &'a [u8],
    leads: Leads,
}

impl From<Draft<'_>> for Entry {
    fn from(draft: Draft<'_>) -> Self {
        Self {
            service: draft.service,
            // Host numbers are at most MAX_HOSTS, so this one fits.
            host: draft.host as u8,
            path: draft.path.to_owned(),
            leads: draft.leads,
        }
    }
}

/// All entries, in order. `chains` says for each host number from which numbers it inherits.
pub(super) fn closure<'a>(levels: &Levels<'a>, chains: &[Vec<usize>]) -> Vec<Draft<'a>> {
    let mut entries = Vec::new();
    for (&service, by_host) in &levels.0 {
        for (host, chain) in chains.iter().enumerate() {
            let levels: Vec<_> = chain.iter().map(|&number| &*by_host[number]).collect();
            entries.extend(inherit(&levels).into_iter().map(|(path, leads)| Draft {
                service,
                host,
                path,
                leads,
            }));
        }
    }
    entries
}

/// The paths of these levels and where they lead; the first level is the most specific one. A path that begins
/// with a path of a more specific level is left out if the route there takes every request: it would never be
/// asked for.
fn inherit<'a>(levels: &[&[Place<'a>]]) -> BTreeMap<&'a [u8], Leads> {
    let mut taken: Vec<&[u8]> = Vec::new();
    let mut paths = BTreeMap::new();
    for level in levels {
        let open =
            |place: &&Place<'a>| !taken.iter().any(|shorter| place.path.starts_with(shorter));
        let open: Vec<Place<'a>> = level.iter().filter(open).copied().collect();
        for place in &open {
            paths
                .entry(place.path)
                .or_insert_with(|| leads(levels, place.path));
        }
        let plain = open.iter().filter(|place| !place.is_conditional);
        taken.extend(plain.map(|place| place.path));
    }
    paths
}

/// Where requests go for which `path` is the longest path of an open route that they begin with. All routes
/// whose path is a prefix of `path` are asked, the most specific first, up to one without conditions.
fn leads(levels: &[&[Place<'_>]], path: &[u8]) -> Leads {
    let mut has_conditions = false;
    for level in levels {
        let covering = level.iter().filter(|place| path.starts_with(place.path));
        let (conditional, plain): (Vec<&Place<'_>>, Vec<_>) =
            covering.partition(|place| place.is_conditional);
        // Of equally long paths the first one counts.
        let longest = plain.iter().rev().max_by_key(|place| place.path.len());
        let least = longest.map_or(0, |place| place.path.len());
        has_conditions |= conditional.iter().any(|place| place.path.len() >= least);
        if let Some(place) = longest {
            return Leads {
                pool: Some(place.pool),
                has_conditions,
            };
        }
    }
    Leads {
        pool: None,
        has_conditions,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain<'a>(path: &'a str, pool: u16) -> Place<'a> {
        Place {
            path: path.as_bytes(),
            is_conditional: false,
            pool,
        }
    }

    fn conditional<'a>(path: &'a str, pool: u16) -> Place<'a> {
        Place {
            is_conditional: true,
            ..plain(path, pool)
        }
    }

    /// Checks each path, the pool that it leads to, and whether conditions may lead elsewhere.
    fn check(levels: &[&[Place<'_>]], expected: &[(&str, Option<u16>, bool)]) {
        let found = inherit(levels);
        let found: Vec<_> = (found.iter())
            .map(|(path, leads)| (*path, leads.pool, leads.has_conditions))
            .collect();
        let expected =
            (expected.iter()).map(|&(path, pool, unless)| (path.as_bytes(), pool, unless));
        assert_eq!(found, expected.collect::<Vec<_>>());
    }

    #[test]
    fn a_path_of_a_more_specific_level_hides_all_that_begin_with_it() {
        let own = [plain("/a/", 1), plain("/a/b/", 2)];
        let inherited = [
            plain("/a/c/", 3),
            plain("/a/", 4),
            plain("/a", 5),
            plain("/", 6),
        ];
        let last = [plain("/", 7), plain("/b", 8)];
        check(
            &[&own, &inherited, &last],
            &[
                ("/", Some(6), false),
                ("/a", Some(5), false),
                ("/a/", Some(1), false),
                ("/a/b/", Some(2), false),
            ],
        );
    }

    #[test]
    fn of_equal_routes_the_first_counts() {
        check(&[&[plain("/", 1), plain("/", 2)]], &[("/", Some(1), false)]);
    }

    #[test]
    fn conditions_hide_nothing() {
        let own = [conditional("/a/", 1)];
        let inherited = [plain("/a/b/", 2), plain("/", 3)];
        check(
            &[&own, &inherited],
            &[
                ("/", Some(3), false),
                ("/a/", Some(3), true),
                // The host's own route is asked first, however short its path.
                ("/a/b/", Some(2), true),
            ],
        );
    }

    #[test]
    fn what_a_longer_path_takes_needs_no_look_at_conditions() {
        let level = [conditional("/", 1), plain("/a/", 2), conditional("/a/", 3)];
        check(&[&level], &[("/", None, true), ("/a/", Some(2), true)]);
        let level = [conditional("/", 1), plain("/a/", 2)];
        check(&[&level], &[("/", None, true), ("/a/", Some(2), false)]);
    }
}
