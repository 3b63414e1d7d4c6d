//! No request is lost, and none is done twice.

use eop_protocol::{ClientOptions, Resend};
use proptest::prelude::*;

use crate::world::{Odds, Outcome, World};

const SESSION: Resend = Resend::Session { limit: 1 << 20 };

fn options(resend: Resend, idempotent: bool) -> ClientOptions {
    ClientOptions {
        resend,
        idempotent,
        ..ClientOptions::default()
    }
}

/// Checks that each request has one end: its answer, or the report that it is lost.
fn each_has_one_end(outcome: &Outcome, requests: u32) {
    let mut ends = [&outcome.answered[..], &outcome.lost].concat();
    ends.sort_unstable();
    assert_eq!(ends, (0..requests).collect::<Vec<_>>());
    assert!(outcome.answered.is_sorted());
    for id in &outcome.answered {
        assert!(outcome.done.contains_key(id), "{id} answered by nobody");
    }
}

fn nothing_is_done_twice(outcome: &Outcome) {
    for (id, times) in &outcome.done {
        assert_eq!(*times, 1, "request {id}");
    }
}

#[test]
fn ten_thousand_redirects_in_one_stream() {
    let odds = Odds {
        cut: 0,
        flip: 0,
        late: 1000,
        early: 0,
    };
    for resend in [Resend::Application, SESSION] {
        let outcome = World::new(options(resend, false), odds, 1).run(10_000, 1);
        each_has_one_end(&outcome, 10_000);
        nothing_is_done_twice(&outcome);
        assert_eq!((outcome.redirects, outcome.lost.len()), (10_000, 0));
    }
}

#[test]
fn ten_thousand_redirects_while_connections_fail() {
    let odds = Odds {
        cut: 20,
        flip: 5,
        late: 700,
        early: 300,
    };
    for (idempotent, resend) in [
        (false, Resend::Application),
        (false, SESSION),
        (true, SESSION),
    ] {
        let outcome = World::new(options(resend, idempotent), odds, 7).run(12_000, 1);
        each_has_one_end(&outcome, 12_000);
        assert!(outcome.redirects >= 10_000, "{}", outcome.redirects);
        assert!(!outcome.lost.is_empty() && outcome.answered.len() > outcome.lost.len());
        if !idempotent {
            nothing_is_done_twice(&outcome);
        }
        assert_eq!(outcome.redone > 0, resend == Resend::Application);
    }
}

fn any_resend() -> impl Strategy<Value = Resend> {
    prop_oneof![Just(Resend::Application), Just(SESSION)]
}

proptest! {
    #[test]
    fn without_failures_all_is_answered_and_done_once(
        seed in any::<u64>(),
        late in 0u64..=1000,
        resend in any_resend(),
        window in 1usize..8,
    ) {
        let odds = Odds { cut: 0, flip: 0, late, early: 0 };
        let outcome = World::new(options(resend, false), odds, seed).run(200, window);
        each_has_one_end(&outcome, 200);
        nothing_is_done_twice(&outcome);
        prop_assert_eq!(outcome.lost.len(), 0);
    }

    #[test]
    fn whatever_fails_each_request_has_one_end_and_is_done_at_most_once(
        seed in any::<u64>(),
        (cut, flip) in (0u64..100, 0u64..50),
        (late, early) in (0u64..=500, 0u64..=500),
        resend in any_resend(),
        window in 1usize..8,
    ) {
        let odds = Odds { cut, flip, late, early };
        let outcome = World::new(options(resend, false), odds, seed).run(200, window);
        each_has_one_end(&outcome, 200);
        nothing_is_done_twice(&outcome);
    }

    #[test]
    fn idempotent_requests_survive_connections_that_die(
        seed in any::<u64>(),
        late in 0u64..=1000,
        window in 1usize..4,
    ) {
        // Cuts are so rare that eight in a row without an answer cannot be chance.
        let odds = Odds { cut: 5, flip: 0, late, early: 0 };
        let outcome = World::new(options(SESSION, true), odds, seed).run(200, window);
        each_has_one_end(&outcome, 200);
        prop_assert_eq!(outcome.lost.len(), 0);
    }
}
