//! Host patterns: their numbers, and which covers which.

use std::cmp::Reverse;

/// The hosts that a route is about. ASCII case means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host<'a> {
    /// Every host, and requests that name none.
    Any,
    /// The host of this name.
    Name(&'a str),
    /// Every name below this one, at any depth, not the name itself: `*.name`.
    Below(&'a str),
}

/// A host pattern and its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberedHost {
    /// The pattern's name in lower case, without `*.`.
    pub name: String,
    /// Whether it means the names below `name` instead of `name`.
    pub wildcard: bool,
    /// The number of the pattern, from 1.
    pub number: u8,
}

/// Host patterns in the order of their first appearance. A pattern's number is its position in it, from 1.
pub(super) struct Numbers(Vec<Pattern>);

struct Pattern {
    name: String,
    wildcard: bool,
}

impl Numbers {
    pub(super) fn of<'a>(hosts: impl Iterator<Item = Host<'a>>) -> Self {
        let mut numbers = Self(Vec::new());
        for host in hosts {
            let (name, wildcard) = match host {
                Host::Any => continue,
                Host::Name(name) => (name, false),
                Host::Below(name) => (name, true),
            };
            if numbers.place(name, wildcard).is_none() {
                let name = name.to_ascii_lowercase();
                numbers.0.push(Pattern { name, wildcard });
            }
        }
        numbers
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The number of a pattern; 0 for any host and for a pattern that has no number.
    pub(super) fn number(&self, host: Host<'_>) -> usize {
        let place = match host {
            Host::Any => None,
            Host::Name(name) => self.place(name, false),
            Host::Below(name) => self.place(name, true),
        };
        place.map_or(0, |place| place + 1)
    }

    /// For each number, beginning with 0, the chain of the number itself and those of the patterns that cover
    /// it, the most specific first. So the number itself is always the first, and 0 always the last.
    pub(super) fn chains(&self) -> Vec<Vec<usize>> {
        let mut chains = vec![vec![0]];
        chains.extend(self.0.iter().enumerate().map(|(place, pattern)| {
            let mut covering: Vec<_> = (0..self.len())
                .filter(|&other| self.0[other].covers(pattern))
                .collect();
            covering.sort_by_key(|&other| Reverse(self.0[other].name.len()));
            let covering = covering.into_iter().map(|other| other + 1);
            [place + 1].into_iter().chain(covering).chain([0]).collect()
        }));
        chains
    }

    /// The patterns with their numbers. There must be at most 255 of them.
    pub(super) fn into_hosts(self) -> Vec<NumberedHost> {
        let numbered = (1..=u8::MAX).zip(self.0);
        numbered
            .map(|(number, Pattern { name, wildcard })| NumberedHost {
                name,
                wildcard,
                number,
            })
            .collect()
    }

    fn place(&self, name: &str, wildcard: bool) -> Option<usize> {
        self.0.iter().position(|pattern| {
            pattern.wildcard == wildcard && pattern.name.eq_ignore_ascii_case(name)
        })
    }
}

impl Pattern {
    /// Whether every host of `other` is one of this pattern's too, and the two are not the same. Ending with
    /// `.name` suffices for that, also if `other` is a wildcard, whose hosts all end with its own name.
    fn covers(&self, other: &Self) -> bool {
        let above = other.name.strip_suffix(&self.name);
        self.wildcard && above.is_some_and(|below| below.ends_with('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_go_from_the_most_specific_to_any() {
        let numbers = Numbers::of(
            [
                Host::Below("org"),
                Host::Name("www.example.org"),
                Host::Any,
                Host::Below("Example.ORG"),
                Host::Name("example.org"),
                Host::Below("example.org"),
                Host::Below("ample.org"),
            ]
            .into_iter(),
        );
        assert_eq!(numbers.len(), 5);
        assert_eq!(
            numbers.chains(),
            [
                vec![0],
                vec![1, 0],
                vec![2, 3, 1, 0],
                vec![3, 1, 0],
                vec![4, 1, 0],
                vec![5, 1, 0]
            ]
        );
    }

    #[test]
    fn a_number_is_of_the_pattern_not_of_its_writing() {
        let numbers = Numbers::of([Host::Name("A.b"), Host::Below("A.b")].into_iter());
        assert_eq!(numbers.number(Host::Any), 0);
        assert_eq!(numbers.number(Host::Name("a.B")), 1);
        assert_eq!(numbers.number(Host::Below("a.b")), 2);
        let hosts = numbers.into_hosts();
        assert_eq!((hosts[1].name.as_str(), hosts[1].number), ("a.b", 2));
    }
}
