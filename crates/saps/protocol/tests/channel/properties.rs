//! Properties that hold for every order of events between two ends that follow the protocol.

use baton_saps_protocol::wire::{Errno, Frame};
use baton_saps_protocol::{Fault, QUANTUM};
use proptest::collection::vec;
use proptest::prelude::*;

use super::world::{B_R, LANES, World};

#[derive(Clone, Debug)]
enum Step {
    Make(usize),
    Send(usize, usize, usize),
    Receive(usize, usize, usize),
    Shutdown(usize, usize),
    Close(usize, usize),
    Reset(usize, usize),
    Transmit(usize, usize),
    Deliver(usize, usize),
    Lose,
}

fn step(losses: bool) -> impl Strategy<Value = Step> {
    let (pair, side) = (0usize..8, 0usize..2);
    let lane = 0..LANES;
    prop_oneof![
        3 => side.clone().prop_map(Step::Make),
        8 => (pair.clone(), side.clone(), 1usize..3000).prop_map(|(p, s, n)| Step::Send(p, s, n)),
        8 => (pair.clone(), side.clone(), 1usize..2000).prop_map(|(p, s, n)| Step::Receive(p, s, n)),
        1 => (pair.clone(), side.clone()).prop_map(|(p, s)| Step::Shutdown(p, s)),
        1 => (pair.clone(), side.clone()).prop_map(|(p, s)| Step::Close(p, s)),
        1 => (pair, side.clone()).prop_map(|(p, s)| Step::Reset(p, s)),
        20 => (side.clone(), lane.clone()).prop_map(|(s, l)| Step::Transmit(s, l)),
        20 => (side, lane).prop_map(|(s, l)| Step::Deliver(s, l)),
        u32::from(losses) => Just(Step::Lose),
    ]
}

fn run(world: &mut World, steps: Vec<Step>) {
    for step in steps {
        match step {
            Step::Make(side) => world.make(side),
            Step::Send(pair, side, length) => world.send(pair, side, length),
            Step::Receive(pair, side, max) => drop(world.receive(pair, side, max)),
            Step::Shutdown(pair, side) => world.shutdown(pair, side),
            Step::Close(pair, side) => world.close(pair, side),
            Step::Reset(pair, side) => world.reset(pair, side),
            Step::Transmit(side, lane) => drop(world.transmit(side, lane)),
            Step::Deliver(side, lane) => drop(world.deliver(side, lane)),
            Step::Lose => {
                world.lose();
                world.open();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Bytes arrive in order and without a gap. All of them arrive, unless the receiver closed the connection or an end
    /// reset it, so there is no deadlock. Once both ends have closed a connection, nothing of it is kept.
    #[test]
    fn every_byte_arrives(steps in vec(step(false), 1..400)) {
        let mut world = World::new(B_R);
        world.open();
        run(&mut world, steps);
        world.settle();
        for (number, pair) in world.pairs.iter().enumerate() {
            prop_assert_eq!(pair.refused.is_some(), number % 5 == 4);
            for side in 0..2 {
                let (from, to) = (&pair.ends[side], &pair.ends[1 - side]);
                prop_assert!(to.received <= from.sent);
                let was_reset = to.reset || from.reset;
                if !to.closed && !was_reset {
                    prop_assert_eq!(to.received, from.sent, "connection {}", number);
                    prop_assert_eq!(to.saw_end, from.shut || from.closed);
                }
            }
        }
        for side in 0..2 {
            for pair in 0..world.pairs.len() {
                world.close(pair, side);
            }
        }
        world.settle();
        for channel in &world.channels {
            prop_assert_eq!(channel.gauges(), Default::default());
            let counters = channel.counters();
            prop_assert_eq!((counters.unknown, counters.faults, counters.stale), (0, 0, 0));
        }
    }

    /// When the link is lost, every open end sees an error or the end of the stream, and later connections work.
    #[test]
    fn every_open_end_sees_that_the_link_is_lost(steps in vec(step(true), 1..400)) {
        let mut world = World::new(B_R);
        world.open();
        run(&mut world, steps);
        world.settle_wires();
        let before = world.pairs.len();
        world.lose();
        world.open();
        world.settle();
        for pair in &world.pairs[..before] {
            for end in &pair.ends {
                if end.id.is_some() && !end.closed {
                    let has_seen_it = end.saw_error.is_some() || end.saw_end;
                    prop_assert!(has_seen_it, "{end:?}");
                }
            }
        }
        world.make(1);
        world.make(1);
        world.settle();
        // Of two connections in a row at most one is refused.
        let pair = if before % 5 == 4 { before + 1 } else { before };
        world.send(pair, 0, 3 * B_R as usize);
        world.settle();
        prop_assert_eq!(world.pairs[pair].ends[1].received, 3 * u64::from(B_R));
    }

    /// Frames of an earlier link change nothing on a later one.
    #[test]
    fn what_is_replayed_after_a_reconnect_is_stale(steps in vec(step(false), 1..200)) {
        let mut world = World::new(B_R);
        world.open();
        run(&mut world, steps);
        world.settle();
        let old = std::mem::take(&mut world.delivered);
        world.lose();
        world.open();
        for (side, epoch, frame) in old {
            let is_hello = matches!(frame, Frame::Hello(_));
            let before = world.channels[side].gauges();
            let fault = world.channels[side].handle_frame(epoch, frame).unwrap_err();
            match fault {
                Fault::Hello => prop_assert!(is_hello),
                fault => prop_assert!(matches!(fault, Fault::Stale { .. }), "{fault}"),
            }
            prop_assert_eq!(world.channels[side].gauges(), before);
        }
    }

    /// A connection that stalls never holds up the bytes of another one.
    #[test]
    fn a_stalled_connection_holds_up_no_other(stalled in 1usize..4, length in 1usize..20_000) {
        let mut world = World::new(B_R);
        world.open();
        for _ in 0..=stalled {
            world.make(1);
        }
        world.settle();
        for pair in 0..stalled {
            world.send(pair, 1, 50_000);
        }
        world.settle_wires();
        prop_assert_eq!(world.channels[1].gauges().stalled, stalled as u64);
        prop_assert_eq!(world.channels[0].gauges().buffered, stalled as u64 * u64::from(B_R));
        world.send(stalled, 1, length);
        loop {
            world.settle_wires();
            if !world.receive(stalled, 0, 300) {
                break;
            }
        }
        prop_assert_eq!(world.pairs[stalled].ends[0].received, length as u64);
        prop_assert_eq!(world.pairs[0].ends[0].received, 0);
    }
}

#[test]
fn connections_take_turns() {
    let mut world = World::new(1 << 20);
    world.open();
    for _ in 0..=LANES {
        world.make(1);
    }
    world.settle();
    // The tag decides the lane, in turn for each connection made, so connections 0 and LANES share one.
    world.send(0, 1, 2 * QUANTUM);
    world.send(LANES, 1, 10);
    let lane = (0..LANES).find(|lane| world.transmit(1, *lane)).unwrap();
    while world.transmit(1, lane) {}
    while world.deliver(0, lane) {}
    let lengths: Vec<usize> = (world.delivered.iter())
        .filter_map(|(_, _, frame)| frame.payload().map(|payload| payload.len()))
        .collect();
    assert_eq!(lengths, [QUANTUM, 10, QUANTUM]);
}

#[test]
fn a_refusal_names_its_reason() {
    let mut world = World::new(B_R);
    world.open();
    for _ in 0..5 {
        world.make(0);
    }
    world.settle();
    assert_eq!(world.pairs[4].refused, Some(Errno::REFUSED));
    assert_eq!(world.channels[0].counters().refused, 1);
}
