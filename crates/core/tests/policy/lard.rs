//! What holds for the policy `lard`.

use std::num::NonZeroU8;
use std::time::Duration;

use baton_core::Moment;
use baton_core::maglev::SIZE;
use baton_core::policy::{Chooser, Load, Policy, Server};
use baton_core::slots::Slot;
use baton_wire::Permille;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::chance::Chance;

/// At most one in this many of a server's places leaves it in one second.
const PACE: usize = 32;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    /// Chance draws a server for each connection, so the servers differ only as chance has it.
    #[test]
    fn nothing_moves_when_balanced(servers in 2usize..14, each in 0usize..200, seed in any::<u64>()) {
        let mut pool = Pool::new(servers);
        let homes = pool.table.clone();
        let mut chance = Chance::new(seed);
        for _ in 0..300 {
            let mut drawn = vec![0; servers];
            for _ in 0..each * servers {
                drawn[chance.bits() as usize % servers] += 1;
            }
            pool.second(&drawn.into_iter().map(Some).collect::<Vec<_>>());
            prop_assert!(pool.table == homes, "at {}: {} places moved", pool.seconds, pool.away(&homes));
        }
    }

    #[test]
    fn a_hot_server_is_relieved_and_has_its_places_back_when_that_is_over(
        servers in 2usize..14,
        each in 20.0..500.0,
        hot in any::<prop::sample::Index>(),
    ) {
        let mut pool = Pool::new(servers);
        let homes = pool.table.clone();
        let hot = hot.index(servers);
        let heat = |place: usize| if usize::from(homes[place]) == hot { 8.0 } else { 1.0 };
        let before = pool.loads(each, heat)[hot];
        for _ in 0..180 {
            let loads = pool.loads(each, heat);
            let (kept, moved) = (pool.places(hot), pool.second(&known(&loads)));
            prop_assert!(moved <= 2 * kept.div_ceil(PACE) + servers, "{moved} places in a second");
        }
        let loads = pool.loads(each, heat);
        let (average, most) = (loads.iter().sum::<f64>() / servers as f64, loads[hot]);
        let full = (65 * (servers - 1) + 24) as f64 / servers as f64;
        let least = loads.iter().copied().fold(f64::INFINITY, f64::min);
        prop_assert!(most < before, "{most} of {before}");
        prop_assert!(most < 2.1 * 65.0 * average / full, "{most} of {average}");
        prop_assert!(least > 0.9 * 25.0 * average / full || most <= 65.0 * average / full, "{loads:?}");
        prop_assert!(pool.away(&homes) < SIZE / servers, "{} away", pool.away(&homes));
        // The table has settled: little moves from now on.
        let settled = pool.table.clone();
        for _ in 0..60 {
            let loads = pool.loads(each, heat);
            pool.second(&known(&loads));
        }
        prop_assert!(pool.away(&settled) < SIZE / 50, "{} moved after", pool.away(&settled));
        // No server is hot anymore.
        for _ in 0..300 {
            let loads = pool.loads(each, |_| 1.0);
            pool.second(&known(&loads));
        }
        prop_assert_eq!(pool.away(&homes), 0);
    }

    /// Whatever loads are read, and whoever comes, leaves or changes its weight: only servers that are there have
    /// places, and each keeps at least a quarter of its home places.
    #[test]
    fn nobody_is_emptied(
        seconds in vec(vec((proptest::option::of(0u32..100_000), any::<u8>()), 5), 100),
        changes in vec(any::<bool>(), 100),
    ) {
        let mut chooser = Chooser::new(Policy::Lard);
        let mut weights = vec![1; 5];
        for (second, (said, changes)) in (0..).zip(seconds.iter().zip(changes)) {
            if changes && second % 5 == 0 {
                weights = said.iter().map(|(_, weight)| *weight).collect();
            }
            let loads: Vec<_> = said.iter().map(|(load, _)| *load).collect();
            let there: Vec<_> = servers(&loads)
                .into_iter()
                .zip(&weights)
                .filter_map(|(server, &weight)| Some(Server { weight: NonZeroU8::new(weight)?, ..server }))
                .collect();
            let homes = Chooser::new(Policy::Path).choices(at(second), &there).to_vec();
            let table = chooser.choices(at(second), &there);
            prop_assert_eq!(table.len(), homes.len());
            for server in &there {
                let slot = u16::from(server.slot);
                let all = homes.iter().filter(|home| **home == slot).count();
                let left = homes.iter().zip(table).filter(|(home, now)| **home == slot && home == now);
                prop_assert!(left.count() * 4 >= all);
            }
            prop_assert!(table.iter().all(|slot| there.iter().any(|server| u16::from(server.slot) == *slot)));
        }
    }

    #[test]
    fn the_order_of_the_input_leaves_no_trace(loads in vec(vec(proptest::option::of(0u32..1000), 5), 60)) {
        let (mut one, mut other) = (Chooser::new(Policy::Lard), Chooser::new(Policy::Lard));
        for (second, loads) in (0..).zip(&loads) {
            let mut servers = servers(loads);
            let choices = one.choices(at(second), &servers).to_vec();
            servers.rotate_left(second as usize % 5);
            servers.swap(0, 1);
            prop_assert!(choices == other.choices(at(second), &servers));
        }
    }
}

/// A server with 8 connections has several times the average load, but so few connections mean nothing.
#[test]
fn a_handful_of_connections_is_no_load() {
    let mut pool = Pool::new(4);
    let homes = pool.table.clone();
    for _ in 0..60 {
        pool.second(&[Some(8), Some(0), Some(1), Some(0)]);
    }
    assert_eq!(pool.away(&homes), 0);
}

#[test]
fn weights_are_what_load_is_measured_by() {
    let mut chooser = Chooser::new(Policy::Lard);
    let mut servers = servers(&[Some(30), Some(600)]);
    servers[1].weight = NonZeroU8::new(20).unwrap();
    let homes = chooser.choices(at(0), &servers).to_vec();
    for second in 1..60 {
        assert!(chooser.choices(at(second), &servers) == homes);
    }
}

#[test]
fn an_unknown_load_neither_gives_nor_takes() {
    let mut pool = Pool::new(4);
    let homes = pool.table.clone();
    for _ in 0..60 {
        pool.second(&[Some(1000), Some(10), None, Some(10)]);
    }
    assert!(pool.away(&homes) > 0);
    for (home, now) in homes.iter().zip(&pool.table) {
        assert!(home == now || (*home != 2 && *now != 2));
    }
}

/// A smoothed load fades away, but never becomes exactly 0.
#[test]
fn places_go_home_when_nobody_comes_any_more() {
    let mut pool = Pool::new(3);
    let homes = pool.table.clone();
    for _ in 0..30 {
        pool.second(&[Some(300), Some(1), Some(1)]);
    }
    assert!(pool.away(&homes) > SIZE / 50);
    for _ in 0..300 {
        pool.second(&[Some(0), Some(0), Some(0)]);
    }
    assert_eq!(pool.away(&homes), 0);
}

#[test]
fn what_was_moved_stays_when_another_leaves() {
    let mut chooser = Chooser::new(Policy::Lard);
    let loads = [Some(1000), Some(10), Some(300), Some(300)];
    let homes = chooser.choices(at(0), &servers(&loads)).to_vec();
    for second in 1..20 {
        chooser.choices(at(second), &servers(&loads));
    }
    let before = chooser.choices(at(20), &servers(&loads)).to_vec();
    let after = chooser.choices(at(20), &servers(&loads)[..3]).to_vec();
    let moved = |place: &usize| homes[*place] == 0 && before[*place] == 1;
    let guests: Vec<usize> = (0..SIZE).filter(moved).collect();
    assert!(guests.len() > SIZE / 40, "{} moved", guests.len());
    assert!(guests.iter().all(|&place| after[place] == 1));
    assert!(!after.contains(&3));
    let others = |place: &usize| homes[*place] != 3 && before[*place] != after[*place];
    let disturbed = (0..SIZE).filter(others).count();
    assert!(
        disturbed < SIZE / 20,
        "{disturbed} places of those that stay"
    );
}

struct Pool {
    chooser: Chooser,
    servers: usize,
    seconds: u64,
    table: Vec<u16>,
}

impl Pool {
    /// Makes a pool with the table that it begins with, before any load is known.
    fn new(servers: usize) -> Self {
        let mut pool = Self {
            chooser: Chooser::new(Policy::Lard),
            servers,
            seconds: 0,
            table: Vec::new(),
        };
        pool.second(&vec![None; servers]);
        pool
    }

    /// Lets one second pass with these connections. Returns how many places moved.
    fn second(&mut self, connections: &[Option<u32>]) -> usize {
        let table = self
            .chooser
            .choices(at(self.seconds), &servers(connections));
        let table = std::mem::replace(&mut self.table, table.to_vec());
        self.seconds += 1;
        self.away(&table)
    }

    /// Returns the connections of each server, if each place draws as many as its heat says and the average is `each`.
    fn loads(&self, each: f64, heat: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut loads = vec![0.0; self.servers];
        for (place, &server) in self.table.iter().enumerate() {
            loads[usize::from(server)] += heat(place);
        }
        let scale = each * self.servers as f64 / loads.iter().sum::<f64>();
        loads.into_iter().map(|load| load * scale).collect()
    }

    fn places(&self, server: usize) -> usize {
        let its = |slot: &&u16| usize::from(**slot) == server;
        self.table.iter().filter(its).count()
    }

    fn away(&self, homes: &[u16]) -> usize {
        homes
            .iter()
            .zip(&self.table)
            .filter(|(home, now)| home != now)
            .count()
    }
}

fn known(loads: &[f64]) -> Vec<Option<u32>> {
    loads.iter().map(|load| Some(load.round() as u32)).collect()
}

fn at(second: u64) -> Moment {
    Moment::after_epoch(Duration::from_secs(second))
}

fn servers(connections: &[Option<u32>]) -> Vec<Server<'static>> {
    const NAMES: [&str; 14] = [
        "ds01", "ds02", "ds03", "ds04", "ds05", "ds06", "ds07", "ds08", "ds09", "ds10", "ds11",
        "ds12", "ds13", "ds14",
    ];
    (0..)
        .zip(connections)
        .map(|(slot, connections)| Server {
            slot: Slot::from(slot),
            name: NAMES[usize::from(slot)],
            weight: NonZeroU8::MIN,
            load: connections.map(|connections| Load {
                connections,
                cpu: Permille::saturating(500),
            }),
        })
        .collect()
}
