//! Orphans, which are connections whose data server died in the middle of a response, in virtual time. Each comes to
//! one end, whatever is lost.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::time::Duration;

use baton_core::Moment;
use baton_core::resume::{AT_ONCE, Action, Known, Resumes};
use baton_wire::{HeadDigest, Outcome};
use proptest::prelude::*;

const FOUND: Known = Known {
    digest: Some(HeadDigest::whole(NonZeroU64::MIN)),
    length: Some(1000),
};

fn at(ms: u64) -> Moment {
    Moment::after_epoch(Duration::from_millis(ms))
}

type World = Resumes<u32, u16>;

fn actions(resumes: &mut World, now: Moment) -> Vec<Action<u32, u16>> {
    std::iter::from_fn(|| resumes.poll(now)).collect()
}

fn asked(action: &Action<u32, u16>) -> (u16, u64, Known) {
    let Action::Ask {
        server,
        number,
        known,
        ..
    } = *action
    else {
        panic!("{action:?}")
    };
    (server, number, known)
}

#[test]
fn the_first_that_has_it_takes_it() {
    let mut resumes = World::new(1);
    resumes.handle_orphan(at(0), 1, 0, vec![5, 6]);
    let (server, number, known) = asked(&actions(&mut resumes, at(0))[0]);
    assert_eq!((server, known), (5, Known::default()));
    resumes.handle_ready(at(1), number, Outcome::Ready, FOUND);
    let take = Action::Take {
        key: 1,
        from: 0,
        server: 5,
    };
    assert_eq!(actions(&mut resumes, at(1)), [take]);
    resumes.handle_ready(at(2), number, Outcome::Begun, FOUND);
    assert_eq!(
        actions(&mut resumes, at(2)),
        [Action::Begun { key: 1, server: 5 }]
    );
    assert_eq!(resumes.open(), 0);
}

/// Milliseconds after the death of a data server at which its requests are looked at a last time.
const LAST_CALL: u64 = 6000;

#[test]
fn the_dead_are_looked_at_a_last_time_but_not_who_is_back() {
    let mut resumes = World::new(1);
    resumes.handle_death(at(0), 5);
    resumes.handle_death(at(1), 6);
    resumes.handle_life(6);
    assert!(actions(&mut resumes, at(LAST_CALL - 1)).is_empty());
    let last = Action::CallLast { server: 5 };
    assert_eq!(actions(&mut resumes, at(LAST_CALL)), [last]);
    assert!(actions(&mut resumes, at(2 * LAST_CALL)).is_empty());
}

#[test]
fn on_standby_nothing_goes_on_and_nothing_begins() {
    let mut resumes = World::new(1);
    resumes.handle_death(at(0), 5);
    resumes.handle_orphan(at(0), 1, 5, vec![]);
    resumes.handle_orphan(at(0), 2, 5, vec![6]);
    resumes.set_front(false);
    resumes.handle_orphan(at(1), 3, 5, vec![6]);
    resumes.handle_death(at(1), 6);
    assert_eq!(resumes.open(), 0);
    assert!(actions(&mut resumes, at(2 * LAST_CALL)).is_empty());
    resumes.set_front(true);
    resumes.handle_orphan(at(20_000), 3, 5, vec![]);
    assert!(matches!(
        actions(&mut resumes, at(20_000))[..],
        [Action::Reset { key: 3, .. }]
    ));
}

#[test]
fn the_next_one_must_have_the_same() {
    let mut resumes = World::new(1);
    resumes.handle_orphan(at(0), 1, 0, vec![5, 6]);
    let (_, number, _) = asked(&actions(&mut resumes, at(0))[0]);
    resumes.handle_ready(at(1), number, Outcome::Ready, FOUND);
    resumes.handle_ready(at(2), number, Outcome::Begun, FOUND);
    actions(&mut resumes, at(2));
    resumes.handle_orphan(at(9), 1, 5, vec![6]);
    let (server, _, known) = asked(&actions(&mut resumes, at(9))[0]);
    assert_eq!((server, known), (6, FOUND));
}

#[test]
fn who_refuses_is_followed_by_the_next_and_the_last_by_a_reset() {
    let mut resumes = World::new(1);
    resumes.handle_orphan(at(0), 1, 0, vec![5, 6]);
    let (_, number, _) = asked(&actions(&mut resumes, at(0))[0]);
    resumes.handle_ready(at(1), number, Outcome::Unreachable, Known::default());
    let (server, number, _) = asked(&actions(&mut resumes, at(1))[0]);
    assert_eq!(server, 6);
    resumes.handle_ready(at(2), number, Outcome::Differs, Known::default());
    let reset = Action::Reset {
        key: 1,
        from: 0,
        why: Some(Outcome::Differs),
    };
    assert_eq!(actions(&mut resumes, at(2)), [reset]);
}

#[test]
fn whom_nobody_can_help_is_told_at_once() {
    let mut resumes = World::new(1);
    resumes.handle_orphan(at(0), 1, 0, vec![]);
    let reset = Action::Reset {
        key: 1,
        from: 0,
        why: None,
    };
    assert_eq!(actions(&mut resumes, at(0)), [reset]);
}

#[test]
fn who_dies_before_it_answers_is_not_waited_for() {
    let mut resumes = World::new(1);
    resumes.handle_orphan(at(0), 1, 0, vec![5, 6, 5]);
    actions(&mut resumes, at(0));
    resumes.handle_death(at(1), 5);
    assert_eq!(asked(&actions(&mut resumes, at(1))[0]).0, 6);
    resumes.handle_death(at(2), 6);
    assert!(matches!(
        actions(&mut resumes, at(2))[..],
        [Action::Reset { .. }]
    ));
}

#[test]
fn what_is_complete_is_left_alone() {
    let mut resumes = World::new(1);
    resumes.handle_orphan(at(0), 1, 0, vec![5]);
    let (_, number, _) = asked(&actions(&mut resumes, at(0))[0]);
    resumes.handle_ready(at(1), number, Outcome::Complete, FOUND);
    assert_eq!(actions(&mut resumes, at(1)), [Action::Leave { key: 1 }]);
    // An answer to an order that is over has no effect.
    resumes.handle_ready(at(2), number, Outcome::Ready, FOUND);
    assert!(actions(&mut resumes, at(2)).is_empty());
}

/// How a data server of the model answers orders.
#[derive(Clone, Copy, Debug)]
enum Server {
    Has,
    Refuses,
    Silent,
}

fn server() -> impl Strategy<Value = Server> {
    prop_oneof![
        Just(Server::Has),
        Just(Server::Refuses),
        Just(Server::Silent)
    ]
}

proptest! {
    /// However much is lost, each orphan comes to one end: a data server that has the response takes it, if there is
    /// one and not too much is lost, or else the client gets a reset. At no time are more orders under way than
    /// allowed.
    #[test]
    fn each_comes_to_one_end(
        servers in prop::collection::vec(server(), 0..4),
        orphans in 1u32..600,
        lost in prop::collection::vec(prop::bool::weighted(0.3), 97),
    ) {
        let mut resumes = World::new(1);
        let all: Vec<u16> = (0..servers.len() as u16).collect();
        for key in 0..orphans {
            resumes.handle_orphan(at(0), key, 100, all.clone());
        }
        let mut owner: BTreeMap<u32, u16> = BTreeMap::new();
        let mut ended: BTreeSet<u32> = BTreeSet::new();
        let (mut turn, mut now) = (0usize, 0);
        let mut is_lost = || { turn += 1; lost[turn % lost.len()] };
        let mut numbers = BTreeSet::new();
        while resumes.open() > 0 {
            prop_assert!(now < 3_600_000, "no end");
            let mut answers = Vec::new();
            let mut begun = Vec::new();
            while let Some(action) = resumes.poll(at(now)) {
                match action {
                    Action::Ask { key, server, number, .. } => {
                        numbers.insert(number);
                        if is_lost() || is_lost() {
                            continue;
                        }
                        match servers[usize::from(server)] {
                            Server::Silent => {}
                            Server::Refuses => answers.push((number, Outcome::Status)),
                            Server::Has if owner.get(&key) == Some(&server) => {
                                answers.push((number, Outcome::Begun));
                            }
                            Server::Has => answers.push((number, Outcome::Ready)),
                        }
                    }
                    Action::Take { key, server, .. } => {
                        prop_assert!(matches!(servers[usize::from(server)], Server::Has));
                        owner.insert(key, server);
                    }
                    Action::Probe { key } => prop_assert!(owner.contains_key(&key)),
                    Action::Begun { key, server } => begun.push((key, server)),
                    Action::Reset { key, .. } => {
                        prop_assert!(ended.insert(key), "{key} ended twice");
                        prop_assert!(!owner.contains_key(&key));
                    }
                    Action::Leave { .. } | Action::CallLast { .. } => {
                        prop_assert!(false, "nothing is complete, nobody died")
                    }
                }
            }
            for (key, server) in begun {
                prop_assert_eq!(owner.get(&key), Some(&server));
                prop_assert!(ended.insert(key), "{} ended twice", key);
            }
            // No order has been answered yet.
            prop_assert!(now > 0 || numbers.len() <= AT_ONCE);
            for (number, outcome) in answers {
                resumes.handle_ready(at(now), number, outcome, FOUND);
            }
            now += 10;
        }
        while let Some(action) = resumes.poll(at(now)) {
            match action {
                Action::Begun { key, .. } | Action::Reset { key, .. } => {
                    prop_assert!(ended.insert(key), "{} ended twice", key);
                }
                _ => {}
            }
        }
        // If every BEGUN of an orphan that was taken was lost, the connection finds its owner when it sends something.
        for key in 0..orphans {
            prop_assert!(ended.contains(&key) || owner.contains_key(&key));
        }
        if !servers.iter().any(|server| matches!(server, Server::Has)) {
            prop_assert!(owner.is_empty());
        }
    }
}
