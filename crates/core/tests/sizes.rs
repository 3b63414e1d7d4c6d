//! What connection servers know of large content.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use baton_core::sizes::{Known, Report};
use baton_wire::{Address, Clock, Endpoint, PathHash, Sizes};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

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

fn clock(second: u64) -> Clock {
    Clock::from_nanos(1_767_225_600_000_000_000 + second * 1_000_000_000)
}

/// All parts of what a report says at this second.
fn hear(known: &mut Known, from: u8, second: u64, report: &Report) -> bool {
    let parts = report.messages(web());
    (parts.iter()).fold(false, |changed, part| {
        known.handle(node(from), clock(second), part) | changed
    })
}

#[test]
fn a_list_counts_when_it_is_whole() {
    let mut report = Report::default();
    assert!(report.messages(web()).is_empty(), "nothing is known yet");
    let all = paths(0..3 * Sizes::PATHS as u64);
    assert!(report.update(clock(0), all.clone()));
    assert!(!report.update(clock(1), all.clone()), "it is the same");
    let parts = report.messages(web());
    assert_eq!(parts.len(), 3);
    let mut known = Known::default();
    assert!(!known.handle(node(1), clock(0), &parts[2]));
    assert!(!known.handle(node(1), clock(0), &parts[0]));
    assert!(!known.handle(node(1), clock(0), &parts[0]), "twice is once");
    assert!(known.large(web()).is_empty());
    assert!(known.handle(node(1), clock(0), &parts[1]));
    assert_eq!(known.large(web()), all);
    assert!(!known.handle(node(1), clock(5), &parts[1]), "said again");
}

#[test]
fn lists_of_several_add_up_and_go_with_who_said_them() {
    let mut known = Known::default();
    let (mut one, mut other) = (Report::default(), Report::default());
    one.update(clock(0), paths([1, 2]));
    other.update(clock(0), paths([2, 3]));
    assert!(hear(&mut known, 1, 0, &one));
    assert!(hear(&mut known, 2, 0, &other));
    assert_eq!(known.large(web()), paths([1, 2, 3]));
    let elsewhere = Endpoint { port: 81, ..web() };
    assert!(known.large(elsewhere).is_empty());
    // The file is gone.
    assert!(one.update(clock(1), paths([])));
    assert!(hear(&mut known, 1, 1, &one));
    assert_eq!(known.large(web()), paths([2, 3]));
    assert!(!known.keep(|_, _| true));
    assert!(known.keep(|from, _| from == node(1)));
    assert!(known.large(web()).is_empty());
}

/// Late: what was said before the list that is being heard.
#[test]
fn an_older_list_is_no_news() {
    let mut known = Known::default();
    let mut report = Report::default();
    report.update(clock(0), paths([1]));
    let old = report.messages(web());
    report.update(clock(1), paths([2]));
    assert!(hear(&mut known, 1, 1, &report));
    assert!(!known.handle(node(1), clock(0), &old[0]));
    assert_eq!(known.large(web()), paths([2]));
}

/// A daemon that starts again has another generation, be it a lower one.
#[test]
fn a_daemon_that_starts_again_is_heard() {
    let mut known = Known::default();
    let mut before = Report::default();
    before.update(clock(1000), paths([1]));
    hear(&mut known, 1, 1000, &before);
    let mut after = Report::default();
    after.update(clock(10), paths([2]));
    assert!(hear(&mut known, 1, 1001, &after));
    assert_eq!(known.large(web()), paths([2]));
}

proptest! {
    /// Messages are lost, come twice and in any order, as long as no older list overtakes the whole of a
    /// newer one; the last list, said again until all of it has come, is what is known.
    #[test]
    fn the_last_list_wins(
        lists in vec(btree_set(any::<u64>(), 0..400), 1..6),
        come in vec(any::<prop::sample::Index>(), 0..60),
    ) {
        let mut report = Report::default();
        let mut said = Vec::new();
        for (second, list) in (0..).zip(&lists) {
            report.update(clock(second), paths(list.iter().copied()));
            said.extend(report.messages(web()).into_iter().map(|part| (clock(second), part)));
        }
        let mut known = Known::default();
        for index in come {
            let (sent, part) = index.get(&said);
            known.handle(node(1), *sent, part);
        }
        hear(&mut known, 1, lists.len() as u64, &report);
        prop_assert_eq!(known.large(web()), paths(lists.last().unwrap().iter().copied()));
        prop_assert_eq!(report.left_out(), 0);
    }
}
