//! Adds up the requests and bytes that data servers report to have counted at their doors.

use std::collections::BTreeMap;

use baton_wire::{Address, Counts, Tallies};

/// What the other data servers have reported. The sums for a pool, a route or a data server never decrease, unless
/// [`ReportedTallies::retain`] forgets the pool or route.
#[derive(Clone, Debug, Default)]
pub struct ReportedTallies(BTreeMap<Address, FromOne>);

/// What one data server has reported.
#[derive(Clone, Debug, Default)]
struct FromOne {
    /// Its newest report.
    newest: Tallies,
    /// The number of the run before that of the newest report.
    run_before: Option<u64>,
    /// The sum of its earlier runs.
    earlier: Counts,
    /// For each pool, counts of earlier reports that `newest` does not include.
    earlier_pools: BTreeMap<u64, Counts>,
    /// For each route, counts of earlier reports that `newest` does not include.
    earlier_routes: BTreeMap<u64, Counts>,
}

impl ReportedTallies {
    /// Takes a data server's report. A report includes what earlier ones said, except for counts that have begun at
    /// zero again and for pools and routes that the data server no longer counts. Those earlier counts are kept.
    pub fn handle(&mut self, from: Address, report: Tallies) {
        let server = self.0.entry(from).or_default();
        let last = &server.newest;
        let is_same_run = last.incarnation == report.incarnation;
        let is_of_run_before = server.run_before == Some(report.incarnation);
        if is_of_run_before || is_same_run && !last.all.is_within(report.all) {
            // An older report, which came late by an earlier stream.
            return;
        }
        if !is_same_run {
            server.run_before = Some(last.incarnation);
            server.earlier += last.all;
        }
        let (pools, routes) = (&mut server.earlier_pools, &mut server.earlier_routes);
        keep_earlier(pools, last.pools(), report.pools(), is_same_run);
        keep_earlier(routes, last.routes(), report.routes(), is_same_run);
        server.newest = report;
    }

    /// Forgets the earlier counts of pools and routes that no longer exist.
    pub fn retain(&mut self, is_pool: impl Fn(u64) -> bool, is_route: impl Fn(u64) -> bool) {
        for server in self.0.values_mut() {
            server.earlier_pools.retain(|id, _| is_pool(*id));
            server.earlier_routes.retain(|id, _| is_route(*id));
        }
    }

    /// The counts of a pool at all these data servers.
    pub fn pool(&self, id: u64) -> Counts {
        let of_pool = |server: &FromOne| {
            let newest = server.newest.pools().get(&id).copied();
            [newest, server.earlier_pools.get(&id).copied()]
        };
        sum(self.0.values().flat_map(of_pool))
    }

    /// The counts of a route at all these data servers.
    pub fn route(&self, id: u64) -> Counts {
        let of_route = |server: &FromOne| {
            let newest = server.newest.routes().get(&id).copied();
            [newest, server.earlier_routes.get(&id).copied()]
        };
        sum(self.0.values().flat_map(of_route))
    }

    /// All counts of one data server.
    pub fn all_of(&self, from: Address) -> Counts {
        let server = self.0.get(&from).into_iter();
        sum(server.flat_map(|server| [Some(server.newest.all), Some(server.earlier)]))
    }
}

fn sum(counts: impl Iterator<Item = Option<Counts>>) -> Counts {
    let mut sum = Counts::default();
    for counts in counts.flatten() {
        sum += counts;
    }
    sum
}

/// Adds to `earlier` the counts of the last report that the new one does not include. The new one includes a count if
/// it is of the same run and has at least that much for the same id.
fn keep_earlier(
    earlier: &mut BTreeMap<u64, Counts>,
    last: &BTreeMap<u64, Counts>,
    new: &BTreeMap<u64, Counts>,
    is_same_run: bool,
) {
    for (id, counts) in last {
        let new = new.get(id).filter(|_| is_same_run);
        if !new.is_some_and(|new| counts.is_within(*new)) {
            *earlier.entry(*id).or_default() += *counts;
        }
    }
}
