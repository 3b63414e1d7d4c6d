//! What happens in each case, step by step.

use std::time::Duration;

use baton_core::Moment;
use baton_core::failover::{Failover, Rules};

use crate::world::{DETECTION, World, address};

/// Returns a world of `hosts` candidates that have settled, with the first one in front.
fn settled(hosts: usize, preempt: bool) -> World {
    let mut world = World::new(hosts, preempt, 7);
    world.run(2 * DETECTION);
    assert_eq!(world.fronts(), [0]);
    world
}

#[test]
fn it_takes_one_detection_to_begin_and_the_first_is_preferred() {
    let mut world = World::new(3, false, 7);
    world.run(DETECTION - 10);
    assert_eq!(world.fronts(), []);
    world.run(20);
    assert_eq!(world.fronts(), [0]);
    world.run(10 * DETECTION);
    assert_eq!(world.fronts(), [0]);
    assert_eq!(world.hosts[0].epoch, 1);
}

/// The first candidate is preferred although the other one has been there longer.
#[test]
fn the_first_is_preferred_even_if_it_starts_late() {
    let mut world = World::new(2, false, 7);
    world.crash(0);
    world.run(DETECTION / 2);
    world.start(0);
    world.run(2 * DETECTION);
    assert_eq!(world.fronts(), [0]);
    assert_eq!(world.hosts[0].epoch, 1);
}

#[test]
fn who_is_alone_does_not_wait() {
    let rules = Rules {
        candidates: vec![address(0)],
        detection: Duration::from_millis(DETECTION),
        preempt: false,
    };
    let mut machine = Failover::standby(Moment::default(), address(0), rules, 0);
    assert!(machine.poll(Moment::default()).is_some());
    assert!(machine.is_front());
}

#[test]
fn the_next_takes_over_and_keeps_it() {
    let mut world = settled(3, false);
    world.crash(0);
    world.run(DETECTION + 10);
    assert_eq!(world.fronts(), [1]);
    assert_eq!(world.hosts[1].epoch, 2);
    world.start(0);
    world.run(10 * DETECTION);
    assert_eq!(world.fronts(), [1]);
    let now = world.moment(0);
    assert_eq!(world.machine(0).who(now), Some(address(1)));
    assert_eq!(world.machine(1).takeovers(), 1);
}

#[test]
fn a_preferred_one_gets_it_back_if_that_is_wanted() {
    let mut world = settled(2, true);
    world.crash(0);
    world.run(2 * DETECTION);
    assert_eq!(world.fronts(), [1]);
    world.start(0);
    world.run(3 * DETECTION);
    assert_eq!(
        world.fronts(),
        [1],
        "not before it has been there for a while"
    );
    for _ in 0..3 * DETECTION {
        world.step();
        assert!(!world.fronts().is_empty());
    }
    assert_eq!(world.fronts(), [0]);
}

#[test]
fn who_was_only_slow_yields_and_the_other_tells_the_lan_again() {
    let mut world = settled(2, false);
    world.hosts[0].paused = true;
    world.run(3 * DETECTION);
    assert_eq!(world.fronts(), [1]);
    assert_eq!(world.hosts[1].announced, 0);
    world.hosts[0].paused = false;
    world.run(DETECTION / 4 + 20);
    assert_eq!(world.fronts(), [1]);
    assert!(!world.hosts[0].has_address);
    assert_eq!(world.hosts[1].announced, 1);
}

#[test]
fn a_standby_that_was_slow_does_not_take_over() {
    let mut world = settled(2, false);
    world.hosts[1].paused = true;
    world.run(10 * DETECTION);
    world.hosts[1].paused = false;
    world.run(5 * DETECTION);
    assert_eq!(world.fronts(), [0]);
    assert_eq!(world.hosts[1].epoch, 0);
}

#[test]
fn a_successor_goes_on_unless_another_has_taken_over() {
    let mut world = settled(2, false);
    world.kill(0);
    world.run(DETECTION / 3);
    world.start(0);
    world.run(5 * DETECTION);
    assert_eq!((world.fronts(), world.hosts[0].epoch), (vec![0], 1));

    world.kill(0);
    world.run(3 * DETECTION);
    assert_eq!(world.fronts(), [1]);
    assert!(world.hosts[0].has_address, "nobody was there to remove it");
    world.start(0);
    world.run(DETECTION);
    assert_eq!(world.fronts(), [1]);
    assert!(!world.hosts[0].has_address);
}

#[test]
fn two_in_front_become_one_the_later_or_the_preferred() {
    // The two are cut off from each other, so the other one takes a later epoch.
    let mut world = settled(2, false);
    world.cut.extend([(0, 1), (1, 0)]);
    world.run(3 * DETECTION);
    assert_eq!(world.fronts(), [0, 1]);
    world.cut.clear();
    world.run(DETECTION);
    assert_eq!((world.fronts(), world.hosts[1].epoch), (vec![1], 2));

    // The two are cut off from the beginning, so both take the same epoch.
    let mut world = World::new(2, false, 7);
    world.cut.extend([(0, 1), (1, 0)]);
    world.run(2 * DETECTION);
    assert_eq!(world.fronts(), [0, 1]);
    world.cut.clear();
    world.run(DETECTION);
    assert_eq!(world.fronts(), [0]);
    assert!(world.hosts[0].announced > 0);
}

#[test]
fn handing_over_leaves_nobody_without_a_front() {
    let mut world = settled(3, false);
    let now = world.moment(0);
    assert!(world.machine(0).hand_to(now, address(2)));
    for _ in 0..DETECTION / 4 {
        world.step();
        assert!(!world.fronts().is_empty());
    }
    assert_eq!((world.fronts(), world.hosts[2].epoch), (vec![2], 2));
    assert!(!world.hosts[0].has_address);
}

#[test]
fn what_is_not_taken_stays() {
    let mut world = settled(2, false);
    let now = world.moment(0);
    world.crash(1);
    assert!(world.machine(0).hand_to(now, address(1)));
    world.run(2 * DETECTION);
    assert_eq!(world.fronts(), [0]);
    let now = world.moment(0);
    assert!(
        !world.machine(0).hand_to(now, address(1)),
        "it is not there"
    );
    assert!(!world.machine(0).hand_to(now, address(7)), "no candidate");
}

#[test]
fn who_understands_nobody_does_not_take_from_one_that_is_there() {
    let mut world = settled(2, false);
    world.crash(1);
    world.foreign.insert(1);
    world.start(1);
    world.run(20 * DETECTION);
    assert_eq!(world.fronts(), [0]);
    let now = world.moment(1);
    assert_eq!(world.machine(1).unintelligible(now), Some(address(0)));
    let now = world.moment(0);
    assert_eq!(world.machine(0).unintelligible(now), None);

    // When the other candidate has crashed, nobody else is left to serve.
    world.crash(0);
    world.run(DETECTION + 10);
    assert_eq!(world.fronts(), [1]);
}

/// The preferred candidate takes over too: it has understood a data server, so its key is right.
#[test]
fn who_is_understood_by_others_takes_over() {
    let mut world = World::new(2, false, 7);
    world.foreign.insert(1);
    world.run(DETECTION / 3);
    world.machine(0).handle_understood();
    world.run(2 * DETECTION);
    assert_eq!(world.fronts(), [0]);
}

#[test]
fn another_key_makes_strangers_of_all_and_the_right_one_again_mends_it() {
    let mut world = settled(2, false);
    world.foreign.insert(1);
    let now = world.moment(1);
    world.machine(1).rekey(now);
    world.run(20 * DETECTION);
    assert_eq!(world.fronts(), [0]);

    world.foreign.clear();
    let now = world.moment(1);
    world.machine(1).rekey(now);
    world.run(DETECTION);
    assert_eq!(world.machine(1).takeovers(), 0);
    world.crash(0);
    world.run(DETECTION + 10);
    assert_eq!(world.fronts(), [1]);
}

/// The two do not agree about whose key is wrong. The candidate that has understood the other before relies on that,
/// and takes over.
#[test]
fn a_front_that_speaks_in_tongues_is_missed() {
    let mut world = settled(2, false);
    world.foreign.insert(0);
    let now = world.moment(0);
    world.machine(0).rekey(now);
    world.run(2 * DETECTION);
    assert_eq!(world.fronts(), [0, 1]);
}
