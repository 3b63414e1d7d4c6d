//! Single cases.

use std::time::Duration;

use baton_core::Moment;
use baton_core::migration::{Failure, Happened, PATIENCE, Receiver, Sender, Stage, Step};
use baton_wire::{Address, BatchFlags, Taken, TakenRefusal, Tcbs};

use crate::entries::entry;
use crate::line::{Weather, World, from};

fn at(ms: u64) -> Moment {
    Moment::after_epoch(Duration::from_millis(ms))
}

fn first(migration: u64) -> Tcbs {
    let flags = BatchFlags {
        first: true,
        ..BatchFlags::default()
    };
    Tcbs::new(migration, 0, flags, &[])
}

/// Takes a batch, and counts no entry as taken. Returns the answer, if there is one.
fn take(receiver: &mut Receiver, now: Moment, from: Address, batch: &Tcbs) -> Option<Taken> {
    if receiver.handle(now, from, batch, Ok(())) {
        receiver.took(0, [0; 4]);
    }
    receiver.pause();
    receiver.poll().map(|(to, taken)| {
        assert_eq!(to, from);
        taken
    })
}

#[test]
fn an_idle_table_goes_over_in_one_pass_and_nothing_is_left() {
    let mut world = World::new(60, Weather::default(), 1);
    let report = world.run().unwrap();
    assert_eq!(report.passes, [60, 0, 0]);
    assert_eq!((report.resent, report.taken.taken), (0, 60));
    // One batch opens the migration, five have twelve entries each, and one closes it.
    assert_eq!(report.batches, 7);
    assert_eq!(world.here, world.there);
}

#[test]
fn a_busy_table_is_passed_over_three_times_before_requests_are_held_back() {
    let mut world = World::new(2000, Weather::default(), 1);
    world.changes = 2000;
    let report = world.run().unwrap();
    assert_eq!(report.passes.len(), 5, "{:?}", report.passes);
}

#[test]
fn a_large_table_is_sent_once_while_nothing_is_lost() {
    let mut world = World::new(100_000, Weather::default(), 1);
    let report = world.run().unwrap();
    assert_eq!((report.taken.taken, report.resent), (100_000, 0));
    assert_eq!(world.here, world.there);
}

#[test]
fn nobody_answers() {
    let mut sender = Sender::new(at(0), 1);
    let mut sent = 0;
    let mut now = at(0);
    let end = loop {
        match sender.poll(now) {
            Some(Step::Send(batch)) if batch.flags.abort => {}
            Some(Step::Send(batch)) => {
                assert_eq!((batch.batch, batch.flags.first), (0, true));
                sent += 1;
            }
            Some(Step::End(end)) => break end,
            Some(other) => panic!("{other:?}"),
            None => now = sender.next_timeout().unwrap().max(now),
        }
    };
    assert_eq!(end, Err(Failure::NoAnswer));
    assert_eq!(now.since_epoch(), PATIENCE);
    assert!((8..20).contains(&sent), "{sent} times");
    assert_eq!(sender.poll(now), None);
    assert_eq!(sender.progress().stage, Stage::Ended);
}

#[test]
fn who_refuses_says_why() {
    let mut sender = Sender::new(at(0), 1);
    let Some(Step::Send(batch)) = sender.poll(at(0)) else {
        panic!("it does not begin");
    };
    let mut receiver = Receiver::default();
    let refusal = TakenRefusal::Stranger;
    assert!(!receiver.handle(at(0), from(), &batch, Err(refusal)));
    let (_, taken) = receiver.poll().unwrap();
    sender.handle_taken(at(1), &taken);
    let end = Step::End(Err(Failure::Refused(refusal)));
    assert_eq!(sender.poll(at(1)), Some(end));
    assert!(!receiver.is_busy());
}

/// An answer of another migration, or one that was forged out of an old answer, has no effect.
#[test]
fn answers_of_others_are_no_answers() {
    let mut sender = Sender::new(at(0), 7);
    assert!(matches!(sender.poll(at(0)), Some(Step::Send(_))));
    let of_other = Taken {
        migration: 6,
        next: 1,
        ..Taken::default()
    };
    sender.handle_taken(at(1), &of_other);
    assert_eq!(sender.poll(at(1)), None);
    sender.handle_taken(
        at(1),
        &Taken {
            migration: 7,
            ..of_other
        },
    );
    assert_eq!(sender.poll(at(1)), Some(Step::Read));
}

#[test]
fn the_address_stays_if_it_cannot_move() {
    let mut world = World::new(10, Weather::default(), 1);
    loop {
        match world.sender.poll(world.now) {
            Some(Step::Send(batch)) => world.receive(&batch),
            Some(Step::Read) => world.sender.read((0..10).map(entry).collect()),
            Some(Step::Hold) => world.sender.held(),
            Some(Step::Transfer) => world.sender.transferred(Err("no".into())),
            Some(Step::End(end)) => {
                assert_eq!(end, Err(Failure::NotTransferred("no".into())));
                break;
            }
            None => {
                world.now = world.now + Duration::from_micros(50);
                world.deliver();
            }
        }
    }
    assert!(!world.receiver.is_busy(), "it was told");
    assert_eq!(world.here.len(), 10, "what came stays");
}

#[test]
fn an_operator_can_end_it() {
    let mut sender = Sender::new(at(0), 1);
    assert!(matches!(sender.poll(at(0)), Some(Step::Send(_))));
    sender.abort();
    let Some(Step::Send(batch)) = sender.poll(at(1)) else {
        panic!("the receiver is not told");
    };
    assert!(batch.flags.abort);
    assert_eq!(sender.poll(at(1)), Some(Step::End(Err(Failure::Aborted))));
}

#[test]
fn one_at_a_time() {
    let other = Address::from_octets([2; 16]);
    let mut receiver = Receiver::default();
    let taken = take(&mut receiver, at(0), from(), &first(5)).unwrap();
    assert_eq!((taken.next, taken.refusal), (1, None));
    let refused = take(&mut receiver, at(1), other, &first(9)).unwrap();
    assert_eq!(refused.refusal, Some(TakenRefusal::Busy));
    // The first migration goes on.
    let batch = Tcbs::new(5, 1, BatchFlags::default(), &[]);
    assert_eq!(take(&mut receiver, at(2), from(), &batch).unwrap().next, 2);
    // A later migration of the same node replaces the first one. An earlier one comes too late.
    assert_eq!(
        take(&mut receiver, at(3), from(), &first(6)).unwrap().next,
        1
    );
    assert_eq!(take(&mut receiver, at(3), from(), &first(5)), None);
    // The receiver does not wait for a sender that is no longer heard.
    assert_eq!(
        take(&mut receiver, at(20_000), other, &first(9))
            .unwrap()
            .refusal,
        None
    );
}

#[test]
fn a_receiver_that_has_begun_anew_says_so() {
    let mut receiver = Receiver::default();
    let batch = Tcbs::new(5, 17, BatchFlags::default(), &[entry(1)]);
    let taken = take(&mut receiver, at(0), from(), &batch).unwrap();
    assert_eq!(taken.refusal, Some(TakenRefusal::Unknown));
}

#[test]
fn the_end_is_acknowledged_again_and_again() {
    let mut receiver = Receiver::default();
    take(&mut receiver, at(0), from(), &first(5)).unwrap();
    assert_eq!(receiver.happened(at(0)), Some(Happened::Began(from())));
    let flags = BatchFlags {
        last: true,
        ..BatchFlags::default()
    };
    let last = Tcbs::new(5, 1, flags, &[]);
    let taken = take(&mut receiver, at(1), from(), &last).unwrap();
    assert_eq!((taken.next, taken.refusal), (2, None));
    assert_eq!(
        receiver.happened(at(1)),
        Some(Happened::Ended(from(), taken))
    );
    assert_eq!(take(&mut receiver, at(2), from(), &last), Some(taken));
    assert_eq!(take(&mut receiver, at(3), from(), &first(5)), Some(taken));
    assert!(!receiver.is_busy());
}

#[test]
fn a_sender_that_dies_is_forgotten() {
    let mut receiver = Receiver::default();
    take(&mut receiver, at(0), from(), &first(5)).unwrap();
    receiver.happened(at(0));
    assert_eq!(receiver.happened(at(9_999)), None);
    assert!(matches!(
        receiver.happened(at(10_000)),
        Some(Happened::Lost(of, _)) if of == from()
    ));
    assert!(!receiver.is_busy());
}

#[test]
fn a_table_that_cannot_be_written_ends_it() {
    let mut receiver = Receiver::default();
    take(&mut receiver, at(0), from(), &first(5)).unwrap();
    let batch = Tcbs::new(5, 1, BatchFlags::default(), &[entry(1)]);
    assert!(receiver.handle(at(1), from(), &batch, Ok(())));
    receiver.fail();
    let (_, taken) = receiver.poll().unwrap();
    assert_eq!(taken.refusal, Some(TakenRefusal::NoTable));
    assert!(!receiver.is_busy());
}
