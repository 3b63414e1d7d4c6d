//! The sums of what data servers have counted.

use std::net::Ipv4Addr;

use baton_core::tallies::ReportedTallies;
use baton_wire::{Address, Counts, Tallies};

fn node(number: u8) -> Address {
    Ipv4Addr::new(192, 0, 2, number).into()
}

fn counts(requests: u64) -> Counts {
    Counts {
        requests,
        bytes: 100 * requests,
        ..Counts::default()
    }
}

/// Returns the tallies of a data server with this many requests, all by route 5 and for pool 1.
fn told(incarnation: u64, requests: u64) -> Tallies {
    let all = counts(requests);
    Tallies::new(incarnation, all, [(1, all)], [(5, all)])
}

#[track_caller]
fn expect_sums(told: &ReportedTallies, expected: u64) {
    let expected = counts(expected);
    assert_eq!((told.pool(1), told.route(5)), (expected, expected));
    assert_eq!((told.pool(5), told.route(1)), (counts(0), counts(0)));
}

#[test]
fn what_several_tell_adds_up() {
    let mut sum = ReportedTallies::default();
    expect_sums(&sum, 0);
    sum.handle(node(1), told(7, 3));
    sum.handle(node(2), told(8, 5));
    expect_sums(&sum, 8);
    sum.handle(node(1), told(7, 4));
    expect_sums(&sum, 9);
    let all = [1, 2, 3].map(|number| sum.all_of(node(number)));
    assert_eq!(all, [counts(4), counts(5), counts(0)]);
}

#[test]
fn what_is_told_again_counts_once() {
    let mut sum = ReportedTallies::default();
    for _ in 0..3 {
        sum.handle(node(1), told(7, 3));
    }
    expect_sums(&sum, 3);
    // An older text arrives late, by a stream that ends.
    sum.handle(node(1), told(7, 2));
    expect_sums(&sum, 3);
}

#[test]
fn a_new_run_keeps_what_the_earlier_one_counted() {
    let mut sum = ReportedTallies::default();
    sum.handle(node(1), told(7, 3));
    sum.handle(node(1), told(9, 0));
    expect_sums(&sum, 3);
    sum.handle(node(1), told(9, 4));
    expect_sums(&sum, 7);
    // A text of the run before arrives late, by a stream that ends.
    sum.handle(node(1), told(7, 3));
    expect_sums(&sum, 7);
    sum.handle(node(1), told(10, 1));
    expect_sums(&sum, 8);
    assert_eq!(sum.all_of(node(1)), counts(8));
}

/// A data server that is taken out of a service forgets what it has counted for that service, and begins at 0 when it
/// is back.
#[test]
fn what_is_not_told_any_more_still_counts() {
    let mut sum = ReportedTallies::default();
    sum.handle(node(1), told(7, 3));
    sum.handle(node(1), Tallies::new(7, counts(3), [], []));
    expect_sums(&sum, 3);
    let back = |requests| {
        let one = counts(requests);
        Tallies::new(7, counts(3 + requests), [(1, one)], [(5, one)])
    };
    sum.handle(node(1), back(1));
    sum.handle(node(1), back(2));
    expect_sums(&sum, 5);
    assert_eq!(sum.all_of(node(1)), counts(5));
    // The pool and the route no longer exist.
    sum.retain(|id| id != 1, |id| id != 5);
    expect_sums(&sum, 2);
}
