//! What connection servers know about large content.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use baton_core::sizes::Known;
use baton_wire::{Address, Endpoint, LargePaths, PathHash};

fn node(number: u8) -> Address {
    Ipv4Addr::new(192, 0, 2, number).into()
}

fn web() -> Endpoint {
    Endpoint {
        address: Ipv4Addr::new(10, 77, 0, 100).into(),
        port: 80,
    }
}

fn paths(hashes: impl IntoIterator<Item = u64>) -> BTreeSet<PathHash> {
    hashes.into_iter().map(PathHash::from).collect()
}

fn told(hashes: impl IntoIterator<Item = u64>) -> LargePaths {
    let mut large = LargePaths::default();
    large.set(web(), paths(hashes));
    large
}

#[test]
fn what_several_tell_adds_up_and_goes_with_who_told_it() {
    let mut known = Known::default();
    assert!(known.handle(node(1), told([1, 2])));
    assert!(!known.handle(node(1), told([1, 2])), "told again");
    assert!(known.handle(node(2), told([2, 3])));
    let all = |known: &Known, at| known.large(at, |_, _| true);
    assert_eq!(all(&known, web()), paths([1, 2, 3]));
    let elsewhere = Endpoint { port: 81, ..web() };
    assert!(all(&known, elsewhere).is_empty());
    // The large file is gone from node 1.
    assert!(known.handle(node(1), told([])));
    assert_eq!(all(&known, web()), paths([2, 3]));
    assert!(known.large(web(), |from, _| from == node(1)).is_empty());
}

/// A data server may get a new configuration before this node does.
#[test]
fn what_is_told_too_early_counts_later() {
    let mut known = Known::default();
    assert!(known.handle(node(1), told([1])));
    assert!(known.large(web(), |_, _| false).is_empty());
    assert!(!known.handle(node(1), told([1])), "nothing new");
    assert_eq!(known.large(web(), |_, at| at == web()), paths([1]));
}
