//! Responses that leave a data server which drains, in virtual time. At every moment each connection belongs to
//! somebody, whatever is lost and whoever dies, and each case comes to an end.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod properties;
mod world;

use std::num::NonZeroU64;
use std::time::Duration;

use baton_core::Moment;
use baton_core::mid_response_handover::{AT_ONCE, Action, Handovers};
use baton_core::resume::Known;
use baton_wire::{HeadDigest, Outcome, YieldAnswer};

const FOUND: Known = Known {
    digest: Some(HeadDigest::whole(NonZeroU64::MIN)),
    length: Some(1000),
};
/// The response of which only the digest is known.
const BEGAN: Known = Known {
    digest: FOUND.digest,
    length: None,
};
const OWNER: u16 = 0;

type Few = Handovers<u32, u16>;

fn at(ms: u64) -> Moment {
    Moment::after_epoch(Duration::from_millis(ms))
}

fn actions(moves: &mut Few, ms: u64) -> Vec<Action<u32, u16>> {
    std::iter::from_fn(|| moves.poll(at(ms))).collect()
}

fn asked(actions: &[Action<u32, u16>]) -> (u16, u64, Known) {
    let found = actions.iter().find_map(|action| match *action {
        Action::Ask {
            server,
            number,
            known,
            ..
        } => Some((server, number, known)),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("nobody is asked: {actions:?}"))
}

/// Begins a move to server 5 and tells the owner to let go. Returns the number of the order at server 5.
fn yielding(moves: &mut Few) -> u64 {
    moves.handle_busy(at(0), 1, OWNER, vec![5, 6], BEGAN);
    let (server, number, known) = asked(&actions(moves, 0));
    assert_eq!((server, known), (OWNER, BEGAN));
    moves.handle_ready(at(1), number, Outcome::Ready, FOUND);
    let (server, number, known) = asked(&actions(moves, 1));
    assert_eq!((server, known), (5, FOUND));
    moves.handle_ready(at(2), number, Outcome::Ready, FOUND);
    let begin = Action::Begin {
        key: 1,
        from: OWNER,
        server: 5,
    };
    assert_eq!(actions(moves, 2), [begin, told(Some(5))]);
    number
}

fn told(server: Option<u16>) -> Action<u32, u16> {
    Action::Yield {
        key: 1,
        from: OWNER,
        server,
    }
}

fn stays(why: Option<Outcome>) -> Action<u32, u16> {
    Action::Stays { key: 1, why }
}

#[test]
fn it_goes_when_another_has_the_same() {
    let mut moves = Few::new(1);
    let number = yielding(&mut moves);
    moves.handle_ready(at(3), number, Outcome::Begun, FOUND);
    let begun = Action::Begun {
        key: 1,
        from: OWNER,
        server: 5,
    };
    assert_eq!(actions(&mut moves, 3), [begun]);
    assert!(!moves.holds(&1));
}

#[test]
fn the_order_at_its_own_server_is_taken_back_until_that_is_heard() {
    let mut moves = Few::new(1);
    moves.handle_busy(at(0), 1, OWNER, vec![5], BEGAN);
    let (_, number, _) = asked(&actions(&mut moves, 0));
    moves.handle_ready(at(1), number, Outcome::Ready, FOUND);
    let cancels = |actions: Vec<Action<u32, u16>>| -> Vec<u64> {
        let numbers = actions.into_iter().filter_map(|action| match action {
            Action::Cancel { server, number, .. } => {
                assert_eq!(server, OWNER);
                Some(number)
            }
            _ => None,
        });
        numbers.collect()
    };
    let first = cancels(actions(&mut moves, 1));
    assert_eq!(first.len(), 1);
    assert_eq!(cancels(actions(&mut moves, 250)), first);
    moves.handle_ready(at(251), first[0], Outcome::Unreachable, Known::default());
    assert!(cancels(actions(&mut moves, 800)).is_empty());
}

/// Nothing has changed yet when the move is given up.
#[test]
fn what_cannot_be_had_elsewhere_stays_for_good() {
    for refusal in [Outcome::NoLength, Outcome::Status, Outcome::Complete] {
        let mut moves = Few::new(1);
        moves.handle_busy(at(0), 1, OWNER, vec![5], BEGAN);
        let (_, number, _) = asked(&actions(&mut moves, 0));
        moves.handle_ready(at(1), number, refusal, Known::default());
        assert_eq!(actions(&mut moves, 1), [stays(Some(refusal))]);
        assert!(!moves.would_take(at(1_000_000), &1));
    }
    let mut moves = Few::new(1);
    moves.handle_busy(at(0), 1, OWNER, vec![5], BEGAN);
    let (_, number, _) = asked(&actions(&mut moves, 0));
    moves.handle_ready(at(1), number, Outcome::Ready, FOUND);
    let (_, number, _) = asked(&actions(&mut moves, 1));
    moves.handle_ready(at(2), number, Outcome::Differs, Known::default());
    assert!(actions(&mut moves, 2).contains(&stays(Some(Outcome::Differs))));
    assert!(!moves.would_take(at(1_000_000), &1));
}

#[test]
fn what_nobody_answers_about_is_looked_at_again() {
    let mut moves = Few::new(1);
    moves.handle_busy(at(0), 1, OWNER, vec![5], BEGAN);
    let mut all = Vec::new();
    for ms in (0..6000).step_by(10) {
        all.extend(actions(&mut moves, ms));
    }
    assert!(all.contains(&stays(None)));
    // The response that was ordered may still come, so the order is cancelled.
    assert!(matches!(
        all.last(),
        Some(Action::Cancel {
            server: OWNER,
            order: 1,
            ..
        })
    ));
    assert!(!moves.would_take(at(2500), &1));
    assert!(moves.would_take(at(10_000), &1));
}

/// A refusal is about one message, and another message may be on its way. So only an answer after "stay" counts.
#[test]
fn a_refusal_is_recalled_before_the_entry_goes_back() {
    let mut moves = Few::new(1);
    yielding(&mut moves);
    moves.handle_answer(at(3), 1, YieldAnswer::Refused);
    assert_eq!(actions(&mut moves, 3), [told(None)]);
    moves.handle_answer(at(4), 1, YieldAnswer::Refused);
    assert!(actions(&mut moves, 4).is_empty());
    assert!(moves.holds(&1));
    moves.handle_answer(at(5), 1, YieldAnswer::Kept);
    let back = Action::Back {
        key: 1,
        from: OWNER,
        server: 5,
    };
    let all = actions(&mut moves, 5);
    assert_eq!(all[..2], [back, stays(None)]);
    assert!(matches!(all[2], Action::Cancel { server: 5, .. }));
    assert!(!moves.holds(&1));
}

#[test]
fn undone_in_the_middle_it_stays() {
    let mut moves = Few::new(1);
    yielding(&mut moves);
    moves.handle_undo(at(3), OWNER);
    assert_eq!(actions(&mut moves, 3), [told(None)]);
    // The drain of another data server was undone, so this move goes on.
    let mut moves = Few::new(1);
    yielding(&mut moves);
    moves.handle_undo(at(3), 9);
    assert!(actions(&mut moves, 3).is_empty());
}

#[test]
fn undone_too_late_it_has_gone() {
    let mut moves = Few::new(1);
    let number = yielding(&mut moves);
    moves.handle_undo(at(3), OWNER);
    actions(&mut moves, 3);
    moves.handle_answer(at(4), 1, YieldAnswer::Gone);
    moves.handle_ready(at(5), number, Outcome::Begun, FOUND);
    assert!(matches!(actions(&mut moves, 5)[..], [Action::Begun { .. }]));
}

#[test]
fn let_go_and_lost_it_is_resumed() {
    let mut moves = Few::new(1);
    yielding(&mut moves);
    moves.handle_answer(at(3), 1, YieldAnswer::Gone);
    let mut all = Vec::new();
    for ms in (3..3000).step_by(10) {
        all.extend(actions(&mut moves, ms));
    }
    let orphan = Action::Orphan {
        key: 1,
        from: OWNER,
        server: 5,
    };
    assert!(all.contains(&orphan), "{all:?}");
}

#[test]
fn if_the_owner_dies_it_is_resumed() {
    let mut moves = Few::new(1);
    yielding(&mut moves);
    moves.handle_death(at(3), OWNER);
    assert!(matches!(
        actions(&mut moves, 3)[..],
        [Action::Orphan { server: 5, .. }]
    ));
    assert!(!moves.holds(&1));
}

/// The owner still has the connection or has let it go. Only the owner knows which.
#[test]
fn if_the_next_one_dies_the_owner_is_asked() {
    let mut moves = Few::new(1);
    yielding(&mut moves);
    moves.handle_death(at(3), 5);
    assert_eq!(actions(&mut moves, 3), [told(None)]);
    assert!(moves.holds(&1));
    let mut gone = Few::new(1);
    yielding(&mut gone);
    gone.handle_answer(at(3), 1, YieldAnswer::Gone);
    gone.handle_death(at(4), 5);
    assert!(matches!(actions(&mut gone, 4)[..], [Action::Orphan { .. }]));
}

#[test]
fn only_so_many_are_under_way_at_once() {
    let mut moves = Few::new(1);
    for key in 0..1000 {
        moves.handle_busy(at(0), key, OWNER, vec![5], BEGAN);
    }
    assert_eq!(actions(&mut moves, 0).len(), AT_ONCE);
    assert_eq!(moves.open(), 1000);
}
