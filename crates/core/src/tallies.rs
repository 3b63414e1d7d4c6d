//! What data servers tell of what their doors have counted, as a connection server adds it up.

use std::collections::BTreeMap;

use baton_wire::{Address, Counts, Tallies};

/// What has been told by all data servers. Sums never go back, as long as this is kept.
#[derive(Clone, Debug, Default)]
pub struct Told(BTreeMap<Address, OfOne>);

/// What one of them has told.
#[derive(Clone, Debug, Default)]
struct OfOne {
    /// Last.
    now: Tallies,
    /// And before it began to count anew: in all,
    before: Counts,
    /// for a pool,
    pools: BTreeMap<u64, Counts>,
    /// or by a route.
    routes: BTreeMap<u64, Counts>,
}

impl Told {
    /// Takes all that a data server tells. What it told before is part of that, but for what it counts anew or not any more.
    pub fn handle(&mut self, from: Address, told: Tallies) {
        let held = self.0.entry(from).or_default();
        let goes_on = held.now.incarnation == told.incarnation;
        if goes_on && !held.now.all.is_within(told.all) {
            // It was told before that, by another stream.
            return;
        }
        if !goes_on {
            held.before += held.now.all;
        }
        retire(&mut held.pools, held.now.pools(), told.pools(), goes_on);
        retire(&mut held.routes, held.now.routes(), told.routes(), goes_on);
        held.now = told;
    }

    /// Forgets what was counted before for pools and routes that are none any more.
    pub fn keep(&mut self, is_pool: impl Fn(u64) -> bool, is_route: impl Fn(u64) -> bool) {
        for held in self.0.values_mut() {
            held.pools.retain(|id, _| is_pool(*id));
            held.routes.retain(|id, _| is_route(*id));
        }
    }

    /// Of a pool, by all of them.
    pub fn pool(&self, id: u64) -> Counts {
        let held = self.0.values();
        sum(held.flat_map(|held| [held.now.pools().get(&id), held.pools.get(&id)]))
    }

    /// Of a route, by all of them.
    pub fn route(&self, id: u64) -> Counts {
        let held = self.0.values();
        sum(held.flat_map(|held| [held.now.routes().get(&id), held.routes.get(&id)]))
    }

    /// Of a data server.
    pub fn all_of(&self, from: Address) -> Counts {
        let held = self.0.get(&from).into_iter();
        sum(held.flat_map(|held| [Some(&held.now.all), Some(&held.before)]))
    }
}

fn sum<'a>(counts: impl Iterator<Item = Option<&'a Counts>>) -> Counts {
    let mut sum = Counts::default();
    for counts in counts.flatten() {
        sum += *counts;
    }
    sum
}

/// What was told last is part of what is told now, if that goes on from there; else it is kept.
fn retire(
    before: &mut BTreeMap<u64, Counts>,
    last: &BTreeMap<u64, Counts>,
    told: &BTreeMap<u64, Counts>,
    goes_on: bool,
) {
    for (id, counts) in last {
        let told = told.get(id).filter(|_| goes_on);
        if !told.is_some_and(|told| counts.is_within(*told)) {
            *before.entry(*id).or_default() += *counts;
        }
    }
}
