//! What the doors of data servers have counted, as a connection server adds it up.

use std::collections::BTreeMap;

use baton_wire::{Address, Counts, Tallies};

/// What all data servers have told. Its sums never go back as long as this value is kept.
#[derive(Clone, Debug, Default)]
pub struct Told(BTreeMap<Address, OfOne>);

/// What one data server has told.
#[derive(Clone, Debug, Default)]
struct OfOne {
    /// What it told last.
    now: Tallies,
    /// The sum over all that it counted before it began to count anew.
    before: Counts,
    /// What it counted before for each pool that is not part of `now`.
    pools: BTreeMap<u64, Counts>,
    /// What it counted before for each route that is not part of `now`.
    routes: BTreeMap<u64, Counts>,
}

impl Told {
    /// Takes all that a data server tells. This includes what it told before, except for what it counts anew or
    /// no longer counts.
    pub fn handle(&mut self, from: Address, told: Tallies) {
        let held = self.0.entry(from).or_default();
        let goes_on = held.now.incarnation == told.incarnation;
        if goes_on && !held.now.all.is_within(told.all) {
            // This is older than what was told last, and came by another stream.
            return;
        }
        if !goes_on {
            held.before += held.now.all;
        }
        retire(&mut held.pools, held.now.pools(), told.pools(), goes_on);
        retire(&mut held.routes, held.now.routes(), told.routes(), goes_on);
        held.now = told;
    }

    /// Forgets what was counted before for pools and routes that no longer exist.
    pub fn keep(&mut self, is_pool: impl Fn(u64) -> bool, is_route: impl Fn(u64) -> bool) {
        for held in self.0.values_mut() {
            held.pools.retain(|id, _| is_pool(*id));
            held.routes.retain(|id, _| is_route(*id));
        }
    }

    /// The counts of a pool at all data servers.
    pub fn pool(&self, id: u64) -> Counts {
        let held = self.0.values();
        sum(held.flat_map(|held| [held.now.pools().get(&id), held.pools.get(&id)]))
    }

    /// The counts of a route at all data servers.
    pub fn route(&self, id: u64) -> Counts {
        let held = self.0.values();
        sum(held.flat_map(|held| [held.now.routes().get(&id), held.routes.get(&id)]))
    }

    /// All counts of a data server.
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

/// Adds to `before` what was told last and is not part of what is told now. It is part of that if the data
/// server goes on counting from there.
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
