//! Random loss, delay, pauses, partitions and kills. Soon after them exactly one candidate is in front, and at no time
//! is nobody in front for long.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::world::{DETECTION, World, address};

#[derive(Clone, Debug)]
enum Act {
    Wait(u64),
    Kill(usize),
    Crash(usize),
    Start(usize),
    Pause(usize),
    Go(usize),
    Cut(usize, usize),
    Join,
    Lose(u64),
    Delay(u64),
    HandTo(usize, usize),
}

fn act() -> impl Strategy<Value = Act> {
    let host = || 0usize..4;
    prop_oneof![
        10 => (0u64..3 * DETECTION).prop_map(Act::Wait),
        2 => host().prop_map(Act::Kill),
        2 => host().prop_map(Act::Crash),
        5 => host().prop_map(Act::Start),
        2 => host().prop_map(Act::Pause),
        4 => host().prop_map(Act::Go),
        2 => (host(), host()).prop_map(|(one, other)| Act::Cut(one, other)),
        2 => Just(Act::Join),
        2 => (0u64..90).prop_map(Act::Lose),
        1 => (0u64..DETECTION).prop_map(Act::Delay),
        2 => (host(), host()).prop_map(|(one, other)| Act::HandTo(one, other)),
    ]
}

/// For how long nobody has been in front, and which hosts have lived all that time.
struct Nobody {
    since: u64,
    witnesses: Vec<usize>,
}

impl Nobody {
    fn look(&mut self, world: &World) -> u64 {
        self.witnesses.retain(|host| world.lives(*host));
        if self.witnesses.is_empty() || !world.fronts().is_empty() {
            self.since = world.now;
            self.witnesses = (0..world.hosts.len())
                .filter(|host| world.lives(*host))
                .collect();
        }
        world.now - self.since
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn soon_there_is_one_and_never_nobody_for_long(
        count in 2usize..5,
        preempt in any::<bool>(),
        seed in any::<u64>(),
        acts in vec(act(), 0..25),
    ) {
        let mut world = World::new(count, preempt, seed);
        let mut nobody = Nobody { since: 0, witnesses: Vec::new() };
        // A message that was on its way when its sender died is still believed when it arrives.
        let mut slowest = world.delay;
        for act in acts {
            match act {
                Act::Wait(ms) => for _ in 0..ms {
                    world.step();
                    let long = nobody.look(&world);
                    prop_assert!(long <= 2 * DETECTION + slowest, "nobody for {long} ms");
                },
                Act::Kill(host) if host < count => world.kill(host),
                Act::Crash(host) if host < count => world.crash(host),
                Act::Start(host) if host < count => world.start(host),
                Act::Pause(host) if host < count => world.hosts[host].paused = true,
                Act::Go(host) if host < count => world.hosts[host].paused = false,
                Act::Cut(one, other) => world.cut.extend([(one, other)]),
                Act::Join => world.cut.clear(),
                Act::Lose(part) => world.loss = part,
                Act::Delay(most) => (world.delay, slowest) = (most, slowest.max(most)),
                Act::HandTo(one, other) if one < count && world.lives(one) && one != other => {
                    let now = world.moment(one);
                    world.machine(one).hand_to(now, address(other));
                }
                _ => {}
            }
        }
        // From here on nothing more goes wrong.
        world.cut.clear();
        (world.loss, world.delay) = (0, 20);
        world.run(slowest);
        for host in 0..count {
            world.hosts[host].paused = false;
        }
        if !(0..count).any(|host| world.lives(host)) {
            world.start(0);
        }
        world.run(3 * DETECTION);
        // The addresses may just be going back to the preferred candidate: then two are in front until the one that
        // gives them back has heard of it.
        let mut giving = 0;
        while preempt && world.fronts().len() == 2 && giving < DETECTION {
            world.step();
            giving += 1;
        }
        prop_assert_eq!(world.fronts().len(), 1, "after {} ms", giving);
        let front = world.fronts()[0];
        let holders: Vec<usize> = (0..count)
            .filter(|host| world.lives(*host) && world.hosts[*host].has_address)
            .collect();
        prop_assert_eq!(&holders, &[front], "the address follows");
        for _ in 0..10 * DETECTION {
            world.step();
            let fronts = world.fronts();
            if preempt {
                // While the addresses go back to the preferred candidate, at most two are in front, and at least one.
                prop_assert!(!fronts.is_empty());
            } else {
                prop_assert_eq!(&fronts, &[front], "it stays");
            }
        }
        let front = world.fronts()[0];
        for host in (0..count).filter(|host| world.lives(*host)).collect::<Vec<_>>() {
            let now = world.moment(host);
            prop_assert_eq!(world.machine(host).who(now), Some(address(front)), "all know who it is");
        }
    }
}
