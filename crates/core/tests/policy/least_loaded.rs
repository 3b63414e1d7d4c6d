//! What holds for the policy `least-loaded`.

use std::num::NonZeroU8;
use std::time::Duration;

use baton_core::Moment;
use baton_core::policy::{Chooser, Load, Policy, Server};
use baton_core::slots::Slot;
use baton_wire::Permille;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::queues::{Node, Queues, Work, shares};

/// Seconds that are enough for the shares to settle.
const SETTLE: usize = 180;

/// Seconds that are enough to see the shares swing, if they do.
const WATCH: usize = 180;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// The speeds of the servers differ by up to a factor of four, and no weight says so.
    #[test]
    fn utilisations_meet_and_stay_together(
        speeds in vec(50.0..200.0, 2..6),
        busy in 0.4..0.8,
        seed in any::<u64>(),
    ) {
        let arrivals = speeds.iter().sum::<f64>() * busy;
        let nodes = (0..).zip(&speeds).map(|(i, &speed)| {
            Node::new(&format!("ds{i}"), 1, Work::Requests(speed))
        });
        let seen = watch(&mut Queues::new(Policy::LeastLoaded, nodes.collect(), seed), arrivals);
        // With equal shares, utilisations would differ as much as speeds do.
        let most = 1.1 * ratio(&speeds).powf(0.4);
        prop_assert!(ratio(&seen.busy) < most, "busy {:?} at {speeds:?}", seen.busy);
        prop_assert!(seen.busy.iter().all(|&busy| busy < 0.97), "{:?}", seen.busy);
        for (least, most) in seen.shares {
            prop_assert!(most < 1.5 * least, "a share from {least} to {most} at {speeds:?}");
        }
    }

    /// Sessions can be of any length, and their length is the delay of the control loop.
    #[test]
    fn a_newcomer_has_its_share_at_once_and_is_not_flooded(
        seconds in 2.0..300.0,
        others in 1usize..6,
        seed in any::<u64>(),
    ) {
        const EACH: f64 = 100.0;
        let node = |i: usize| Node::new(&format!("ds{i}"), 1, Work::Sessions(seconds));
        let mut queues = Queues::new(Policy::LeastLoaded, (0..others).map(node).collect(), seed);
        let arrivals = EACH * others as f64 / seconds;
        for node in &mut queues.nodes {
            node.connections = EACH as u32;
        }
        for _ in 0..60 {
            queues.second(arrivals);
        }
        queues.nodes.push(node(others));
        let fair = 1.0 / (others + 1) as f64;
        for second in 0..600 {
            let share = queues.second(arrivals)[others];
            // At first a newcomer's share follows its weight alone. Then it follows the loads, which are as uneven as
            // chance makes them.
            if second == 0 {
                prop_assert!((share / fair - 1.0).abs() < 0.05, "{share} of {fair} at first");
            }
            prop_assert!(share > 0.5 * fair, "{share} of {fair} at {second}");
            prop_assert!(share < 4.0 * fair, "{share} of {fair} at {second}");
            let has = f64::from(queues.nodes[others].connections);
            // The margin is four standard deviations of chance.
            let due = EACH * others as f64 * fair;
            prop_assert!(has < 1.3 * due + 4.0 * due.sqrt(), "{has} of {due} at {second}");
        }
    }

    #[test]
    fn the_order_of_the_input_leaves_no_trace(loads in vec(vec(load(), 5), 20)) {
        let (mut one, mut other) = (chooser(), chooser());
        for (second, loads) in loads.iter().enumerate() {
            let mut servers = servers(loads);
            let choices = one.choices(at(second), &servers).to_vec();
            servers.rotate_left(second % 5);
            prop_assert_eq!(choices, other.choices(at(second), &servers));
        }
    }

    /// Whatever loads are read, shares change by little at a time, and no server is left out.
    #[test]
    fn steps_are_bounded(loads in vec(vec(load(), 4), 60)) {
        let mut chooser = chooser();
        let mut before: Option<Vec<f64>> = None;
        for (second, loads) in loads.iter().enumerate() {
            let now = shares(chooser.choices(at(second), &servers(loads)), 4);
            prop_assert!(now.iter().all(|&share| share > 0.0));
            for (before, now) in before.iter().flatten().zip(&now) {
                prop_assert!((now / before).ln().abs() < 0.3, "from {before} to {now}");
            }
            before = Some(now);
        }
    }

    #[test]
    fn an_unknown_load_is_an_average_one(known in vec((0u32..1000, 0u16..=1000), 3)) {
        let load = |connections, cpu| Load { connections, cpu: Permille::saturating(cpu) };
        // Connections are multiplied by three, so that the average is a whole number.
        let sum = known.iter().fold((0, 0), |sum, load| (sum.0 + load.0, sum.1 + load.1));
        let known: Vec<_> = known.iter().map(|known| Some(load(known.0 * 3, known.1))).collect();
        let average = Some(load(sum.0, sum.1 / 3));
        prop_assume!(sum.1.is_multiple_of(3));
        let (mut one, mut other) = (chooser(), chooser());
        for second in 0..30 {
            let with = |last| servers(&[&known[..], &[last]].concat());
            let unknown = one.choices(at(second), &with(None)).to_vec();
            prop_assert_eq!(unknown, other.choices(at(second), &with(average)));
        }
    }
}

/// Round robin overloads the slowest of the same servers, which is the reason for this policy.
#[test]
fn speeds_that_weights_do_not_tell_overload_the_slow_one_but_here() {
    let nodes = || {
        [("ds1", 50.0), ("ds2", 100.0), ("ds3", 200.0)]
            .map(|(name, speed)| Node::new(name, 1, Work::Requests(speed)))
            .into()
    };
    let mut weighted = Queues::new(Policy::Weighted, nodes(), 1);
    let mut least = Queues::new(Policy::LeastLoaded, nodes(), 1);
    watch(&mut weighted, 245.0);
    watch(&mut least, 245.0);
    assert!(weighted.nodes[0].connections > 1000, "its queue grows");
    let queues: Vec<u32> = least.nodes.iter().map(|node| node.connections).collect();
    assert!(queues.iter().all(|&queue| queue < 100), "{queues:?}");
}

#[test]
fn nothing_is_dealt_anew_for_a_little_noise() {
    let mut chooser = chooser();
    let noisy = |second: usize, server: usize| {
        let noise = (second * 7 + server * 3) % 11;
        Some(Load {
            connections: 95 + noise as u32,
            cpu: Permille::saturating(480 + 4 * noise as u16),
        })
    };
    let loads = |second| (0..5).map(|i| noisy(second, i)).collect::<Vec<_>>();
    let first = chooser.choices(at(0), &servers(&loads(0))).to_vec();
    for second in 1..600 {
        assert_eq!(
            chooser.choices(at(second), &servers(&loads(second))),
            first,
            "at {second}"
        );
    }
}

#[test]
fn weights_are_what_load_is_measured_by() {
    let mut chooser = chooser();
    let load = |connections| {
        Some(Load {
            connections,
            cpu: Permille::saturating(500),
        })
    };
    let mut servers = servers(&[load(100), load(300)]);
    servers[1].weight = NonZeroU8::new(3).unwrap();
    for second in 0..100 {
        let shares = shares(chooser.choices(at(second), &servers), 2);
        assert!((shares[1] - 0.75).abs() < 0.01, "{shares:?}");
    }
}

struct Seen {
    /// The average utilisation of each node.
    busy: Vec<f64>,
    /// The smallest and the largest share of each node.
    shares: Vec<(f64, f64)>,
}

/// Lets the shares settle, then observes them.
fn watch(queues: &mut Queues, arrivals: f64) -> Seen {
    for _ in 0..SETTLE {
        queues.second(arrivals);
    }
    let nodes = queues.nodes.len();
    let mut seen = Seen {
        busy: vec![0.0; nodes],
        shares: vec![(1.0, 0.0); nodes],
    };
    for _ in 0..WATCH {
        let shares = queues.second(arrivals);
        for (index, share) in shares.into_iter().enumerate() {
            seen.busy[index] += queues.nodes[index].busy / WATCH as f64;
            let (least, most) = &mut seen.shares[index];
            (*least, *most) = (least.min(share), most.max(share));
        }
    }
    seen
}

/// Returns the largest value divided by the smallest.
fn ratio(values: &[f64]) -> f64 {
    let most = values.iter().copied().fold(0.0, f64::max);
    most / values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn chooser() -> Chooser {
    Chooser::new(Policy::LeastLoaded)
}

fn at(second: usize) -> Moment {
    Moment::after_epoch(Duration::from_secs(second as u64))
}

fn load() -> impl Strategy<Value = Option<Load>> {
    let known = (0u32..100_000, 0u16..=1000).prop_map(|(connections, cpu)| Load {
        connections,
        cpu: Permille::saturating(cpu),
    });
    proptest::option::weighted(0.8, known)
}

fn servers(loads: &[Option<Load>]) -> Vec<Server<'static>> {
    const NAMES: [&str; 5] = ["ds1", "ds2", "ds3", "ds4", "ds5"];
    (0..)
        .zip(loads)
        .map(|(slot, &load)| Server {
            slot: Slot::from(slot),
            name: NAMES[usize::from(slot)],
            weight: NonZeroU8::MIN,
            load,
        })
        .collect()
}
