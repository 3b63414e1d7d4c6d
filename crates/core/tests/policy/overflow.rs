//! What holds for the policy `overflow`.

use std::num::NonZeroU8;
use std::time::Duration;

use baton_core::Moment;
use baton_core::policy::{Chooser, Limits, Load, Policy, Server};
use baton_core::slots::Slot;
use baton_wire::Permille;
use proptest::prelude::*;

/// A home and other servers of these weights, simulated second by second.
struct Pool {
    chooser: Chooser,
    second: u64,
    weights: Vec<u8>,
    names: Vec<String>,
    /// The shares of the last second. At first the home has all.
    last: Vec<f64>,
}

impl Pool {
    fn new(cpu: Option<u16>, connections: Option<u32>, others: &[u8]) -> Self {
        let limits = Limits {
            home: Slot::from(0),
            cpu: cpu.map(Permille::saturating),
            connections,
        };
        let weights = [&[1], others].concat();
        Self {
            chooser: Chooser::new(Policy::Overflow(limits)),
            second: 0,
            last: (0..weights.len())
                .map(|index| f64::from(u8::from(index == 0)))
                .collect(),
            names: (0..weights.len())
                .map(|index| format!("n{index}"))
                .collect(),
            weights,
        }
    }

    /// Returns the shares of the next second, if these were the loads until now: connections and CPU in permille.
    fn shares(&mut self, loads: &[Option<(u32, u16)>]) -> Vec<f64> {
        let servers: Vec<Server<'_>> = (0..self.weights.len())
            .map(|index| Server {
                slot: Slot::from(index as u8),
                name: &self.names[index],
                weight: NonZeroU8::new(self.weights[index]).unwrap(),
                load: loads[index].map(|(connections, cpu)| Load {
                    connections,
                    cpu: Permille::saturating(cpu),
                }),
            })
            .collect();
        let now = Moment::after_epoch(Duration::from_secs(self.second));
        self.second += 1;
        let choices = self.chooser.choices(now, &servers);
        let of = |slot: u16| choices.iter().filter(|&&choice| choice == slot).count();
        let all = choices.len() as f64;
        self.last = (0..self.weights.len() as u16)
            .map(|slot| of(slot) as f64 / all)
            .collect();
        self.last.clone()
    }

    /// Returns the shares after some seconds in which the service has `all` connections.
    fn with_connections(&mut self, all: u32) -> Vec<f64> {
        let mut shares = vec![1.0; self.weights.len()];
        for _ in 0..5 {
            let even = all / self.weights.len() as u32;
            let mut loads = vec![Some((even, 0)); self.weights.len()];
            loads[0] = Some((all - even * (self.weights.len() as u32 - 1), 0));
            shares = self.shares(&loads);
        }
        shares
    }

    /// Returns the shares after some seconds of work that would use `work` permille of the home's CPU if the home did
    /// all of it.
    fn with_work(&mut self, work: f64, seconds: u32) -> Vec<f64> {
        for _ in 0..seconds {
            let loads: Vec<_> = (self.last.iter())
                .map(|share| Some((0, (share * work).min(1000.0) as u16)))
                .collect();
            self.shares(&loads);
        }
        self.last.clone()
    }
}

#[test]
fn the_home_serves_what_fits() {
    let mut pool = Pool::new(None, Some(100), &[1, 1]);
    for all in [0, 1, 99, 100, 3] {
        assert_eq!(pool.with_connections(all), [1.0, 0.0, 0.0], "{all}");
    }
}

#[test]
fn what_does_not_fit_is_the_others_by_weight() {
    let mut pool = Pool::new(None, Some(100), &[3, 1]);
    let shares = pool.with_connections(200);
    for (share, due) in shares.iter().zip([0.5, 0.375, 0.125]) {
        assert!((share - due).abs() < 0.01, "{shares:?}");
    }
}

/// Overflow begins above the limit, and ends when all connections fit in nine tenths of the limit.
#[test]
fn it_ends_lower_than_it_begins() {
    let mut pool = Pool::new(None, Some(100), &[1]);
    assert_eq!(pool.with_connections(100)[0], 1.0);
    assert!(pool.with_connections(101)[0] < 1.0);
    for all in [100, 95, 91] {
        let share = pool.with_connections(all)[0];
        assert!(share < 1.0 && share > 0.9, "{share} of {all}");
    }
    assert_eq!(pool.with_connections(90)[0], 1.0);
    assert_eq!(pool.with_connections(100)[0], 1.0);
}

/// If the home is not there, the other servers get everything.
#[test]
fn the_home_is_gone() {
    let mut pool = Pool::new(None, Some(100), &[1, 1]);
    assert!(pool.with_connections(1000)[0] < 0.2);
    let limits = Limits {
        home: Slot::from(9),
        cpu: None,
        connections: Some(100),
    };
    pool.chooser = Chooser::new(Policy::Overflow(limits));
    let shares = pool.with_connections(1000);
    assert!(
        shares.iter().all(|share| (share - 1.0 / 3.0).abs() < 0.01),
        "{shares:?}"
    );
}

/// The last load that the home reported stays valid.
#[test]
fn a_silent_home_keeps_its_share() {
    let mut pool = Pool::new(Some(500), Some(100), &[1]);
    let before = pool.with_connections(200);
    for _ in 0..10 {
        assert_eq!(pool.shares(&[None, Some((150, 0))]), before);
    }
}

#[test]
fn nobody_else_is_there() {
    let mut pool = Pool::new(Some(500), Some(1), &[]);
    assert_eq!(pool.with_connections(1000), [1.0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the work is, the home's CPU comes to the limit and stays there, and everything comes home when there is
    /// less work.
    #[test]
    fn cpu_settles_at_the_limit(work in 600.0f64..4000.0, others in proptest::collection::vec(1u8..9, 1..5)) {
        const LIMIT: u16 = 500;
        let mut pool = Pool::new(Some(LIMIT), None, &others);
        prop_assert_eq!(pool.with_work(400.0, 30)[0], 1.0);
        pool.with_work(work, 60);
        let mut least = f64::MAX;
        let mut most = 0.0f64;
        for _ in 0..30 {
            let cpu = pool.with_work(work, 1)[0] * work;
            least = least.min(cpu);
            most = most.max(cpu);
        }
        // The CPU stays between the two limits, or as near as shares in parts of 64 allow.
        let part = work / 64.0;
        prop_assert!(least > 0.85 * f64::from(LIMIT) - part, "{least} to {most}");
        prop_assert!(most < 1.05 * f64::from(LIMIT) + part, "{least} to {most}");
        prop_assert_eq!(pool.with_work(300.0, 60)[0], 1.0);
    }

    /// At any time the shares of all servers add up to 1, and the home has a share.
    #[test]
    fn the_home_always_has_some(loads in proptest::collection::vec((0u32..100_000, 0u16..=1000), 1..40)) {
        let mut pool = Pool::new(Some(300), Some(50), &[1, 255]);
        for (connections, cpu) in loads {
            let shares = pool.shares(&[Some((connections, cpu)), Some((connections, 0)), Some((0, 0))]);
            prop_assert!(shares[0] > 0.0, "{shares:?}");
            let sum: f64 = shares.iter().sum();
            prop_assert!((sum - 1.0).abs() < 1e-9);
        }
    }
}
