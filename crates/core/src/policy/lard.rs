//! Locality-aware request distribution (Pai et al., ASPLOS 1998), by places of the table.
//!
//! The paper assigns each target to a server at its first request, and to another when
//!
//! ```text
//! load > T_high and somebody's load < T_low, or load >= 2 T_high      T_low = 25, T_high = 65
//! ```
//!
//! Here a target is a *place*: all paths whose hashes have the same remainder. Its first server, its *home*, is
//! the one that Maglev gives it, so that every CS knows it without asking. Once a second, while the rule above
//! holds for a server, a bounded part of its places moves to a server with little to do. Places stay there, and
//! drift home when their home has no more to do than the average. CSs that see the same loads move the same
//! places. Where they differ for a while, a path is in the memory of two servers, no more.
//!
//! The paper's numbers are active connections, for servers of one kind. Its front end admits at most
//! S = (n - 1) T_high + T_low - 1 of them. Nothing is refused here. So the numbers are taken as those of a
//! cluster that is as full as it may be, and are scaled to the connections that there are: with an average of a
//! per capacity (weight over average weight), a/(S/n) times 25 and 65. They are scaled down to an eighth at
//! most: below that, differences are chance.
//!
//! A path has one place, so all its requests go to one server, however many they are: the paper's replication
//! (LARD/R) would need choices that name more than one server. It is not known either which of a server's places
//! have the most requests; those that leave are taken in turn.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU8;
use std::time::Duration;

use super::rule::Rule;
use super::server::{Server, average_per_capacity, capacities, named};
use crate::{Moment, maglev};

/// Active connections below which the paper calls a server underused.
const T_LOW: f64 = 25.0;

/// Active connections from which the paper sees clients wait.
const T_HIGH: f64 = 65.0;

/// How small a cluster the paper's numbers are scaled down to.
const LEAST_SCALE: f64 = 0.125;

/// The time between two looks at the loads.
const PERIOD: Duration = Duration::from_secs(1);

/// How many periods it takes a change of load to be believed for most of it (1 - 1/e).
const SMOOTHING: f64 = 5.0;

/// Of the places that would balance two servers, one in this many moves in one period. That is slower than
/// changes of load are believed, so that no more places leave than have to.
const PACE: f64 = 32.0;

/// Of the places that belong to a home, one in this many may drift back in one period.
const DRIFT: f64 = 256.0;

/// Of the places that belong to a home, one in this many stays there whatever the load.
const STAY: usize = 4;

#[derive(Debug, Default)]
pub(super) struct Lard {
    due: Option<Moment>,
    /// The names and weights of the servers from which `homes` was made.
    members: Vec<(String, NonZeroU8)>,
    /// The home of each place, as an index of `members`.
    homes: Vec<usize>,
    /// The places that are not at home, and the names of their hosts.
    away: BTreeMap<usize, String>,
    /// The smoothed connections of each server, by name.
    connections: BTreeMap<String, f64>,
}

impl Rule for Lard {
    fn choices(&mut self, now: Moment, servers: &[Server<'_>]) -> Vec<usize> {
        self.settle(servers);
        let mut table = self.table(servers);
        if self.due.is_none_or(|due| due <= now) {
            self.due = Some(now + PERIOD);
            let loads = self.look_at(servers);
            relieve(&mut table, &self.homes, &loads);
            drift_home(&mut table, &self.homes, &loads);
            self.away = away(&table, &self.homes)
                .map(|(place, server)| (place, servers[server].name.to_owned()))
                .collect();
        }
        table
    }

    fn next_timeout(&self) -> Option<Moment> {
        self.due
    }
}

impl Lard {
    /// Sets the homes to those of these servers. A place whose home has changed, or whose host is gone, is at
    /// home again.
    fn settle(&mut self, servers: &[Server<'_>]) {
        let named = named(servers);
        let same = |((name, weight), member): (&(&str, NonZeroU8), &(String, NonZeroU8))| {
            *name == member.0 && *weight == member.1
        };
        if named.len() == self.members.len() && named.iter().zip(&self.members).all(same) {
            return;
        }
        let homes = maglev::table(&named).unwrap_or_default();
        let mut may_leave = may_leave(&homes, servers.len());
        self.away.retain(|&place, host| {
            let home = homes[place];
            let stays = self.members[self.homes[place]].0 == named[home].0
                && named.iter().any(|(name, _)| name == host)
                && may_leave[home] > 0;
            may_leave[home] -= usize::from(stays);
            stays
        });
        self.homes = homes;
        self.members = named
            .into_iter()
            .map(|(name, weight)| (name.to_owned(), weight))
            .collect();
    }

    /// Which server has which place.
    fn table(&self, servers: &[Server<'_>]) -> Vec<usize> {
        let mut table = self.homes.clone();
        for (place, host) in &self.away {
            // Servers come in the order of their names.
            if let Ok(host) = servers.binary_search_by_key(&host.as_str(), |server| server.name) {
                table[*place] = host;
            }
        }
        table
    }

    fn look_at(&mut self, servers: &[Server<'_>]) -> Loads {
        let capacities = capacities(servers);
        let read = |server: &Server<'_>| server.load.map(|load| f64::from(load.connections));
        let readings = servers.iter().map(read).zip(capacities.iter().copied());
        let average = average_per_capacity(readings.clone()).unwrap_or(0.0);
        let believed: Vec<Option<f64>> = servers
            .iter()
            .zip(readings)
            .map(|(server, (reading, capacity))| {
                let believed = self.connections.get(server.name).copied();
                // A server that has just come has had no time to get connections, so it begins at the average.
                let believed = believed.unwrap_or(average * capacity);
                Some(believed + (reading? - believed) / SMOOTHING)
            })
            .collect();
        let pairs = || believed.iter().copied().zip(capacities.iter().copied());
        let average = average_per_capacity(pairs()).unwrap_or(0.0);
        let connections: Vec<f64> = pairs()
            .map(|(believed, capacity)| believed.unwrap_or(average * capacity))
            .collect();
        self.connections = servers
            .iter()
            .zip(&connections)
            .map(|(server, connections)| (server.name.to_owned(), *connections))
            .collect();
        Loads::new(connections, capacities)
    }
}

/// The loads of the servers, by index.
struct Loads {
    /// Connections per capacity.
    loads: Vec<f64>,
    capacities: Vec<f64>,
    average: f64,
    low: f64,
    high: f64,
}

impl Loads {
    fn new(connections: Vec<f64>, capacities: Vec<f64>) -> Self {
        let servers = connections.len() as f64; // capacities add up to it as well
        let average = connections.iter().sum::<f64>() / servers;
        let full = ((servers - 1.0) * T_HIGH + T_LOW - 1.0) / servers;
        let scale = (average / full).max(LEAST_SCALE);
        let loads = connections
            .iter()
            .zip(&capacities)
            .map(|(connections, capacity)| connections / capacity)
            .collect();
        Self {
            loads,
            capacities,
            average,
            low: T_LOW * scale,
            high: T_HIGH * scale,
        }
    }

    /// Which server gives to which other one, and which part of its load, so that one of the two comes to the
    /// average. The most loaded give first, and to the least loaded first.
    fn surpluses(&self) -> Vec<(usize, usize, f64)> {
        let mut order: Vec<usize> = (0..self.loads.len()).collect();
        order.sort_by(|&one, &other| self.loads[other].total_cmp(&self.loads[one]));
        let mut above: Vec<f64> = self
            .loads
            .iter()
            .zip(&self.capacities)
            .map(|(load, capacity)| (load - self.average) * capacity)
            .collect();
        let mut surpluses = Vec::new();
        for &hot in &order {
            for &cool in order.iter().rev() {
                let part = above[hot].min(-above[cool]);
                if !self.is_unbalanced(hot, cool) || part <= 0.0 {
                    continue;
                }
                above[hot] -= part;
                above[cool] += part;
                surpluses.push((hot, cool, part / (self.loads[hot] * self.capacities[hot])));
            }
        }
        surpluses
    }

    /// Whether `home` has no more to do than both the average and `host`, or has next to nothing to do.
    fn has_room(&self, home: usize, host: usize) -> bool {
        let enough = self.loads[host].min(self.average);
        self.loads[home] <= enough.max(T_LOW * LEAST_SCALE)
    }

    /// Whether the paper's rule moves load from `hot` to `cool`. In its second case `cool` must be below the
    /// average.
    fn is_unbalanced(&self, hot: usize, cool: usize) -> bool {
        let (hot, cool) = (self.loads[hot], self.loads[cool]);
        hot > self.high && cool < self.low || hot >= 2.0 * self.high && cool < self.average
    }
}

/// For each server, how many of the places whose home it is may be away at a time.
fn may_leave(homes: &[usize], servers: usize) -> Vec<usize> {
    let mut own = vec![0; servers];
    for &home in homes {
        own[home] += 1;
    }
    own.into_iter()
        .map(|own: usize| own - own.div_ceil(STAY))
        .collect()
}

/// Moves places away from servers that have too much to do, first those whose home is elsewhere.
fn relieve(table: &mut [usize], homes: &[usize], loads: &Loads) {
    let surpluses = loads.surpluses();
    if surpluses.is_empty() {
        return;
    }
    let mut free = may_leave(homes, loads.loads.len());
    let mut guests = vec![VecDeque::new(); loads.loads.len()];
    let mut own = guests.clone();
    for (place, (&host, &home)) in table.iter().zip(homes).enumerate() {
        if host == home {
            own[host].push_back(place);
        } else {
            guests[host].push_back(place);
            free[home] = free[home].saturating_sub(1);
        }
    }
    for (hot, cool, surplus) in surpluses {
        let leaving = (own[hot].len() + guests[hot].len()) as f64 * surplus / PACE;
        for _ in 0..leaving.ceil() as usize {
            let place = guests[hot].pop_front().or_else(|| {
                free[hot] = free[hot].checked_sub(1)?;
                own[hot].pop_front()
            });
            let Some(place) = place else { break };
            table[place] = cool;
        }
    }
}

/// Moves places back to their homes where these have room. The places that left last come first: places leave in
/// ascending order, so this goes in descending order.
fn drift_home(table: &mut [usize], homes: &[usize], loads: &Loads) {
    let mut leave = vec![0.0; loads.loads.len()];
    for &home in homes {
        leave[home] += 1.0 / DRIFT;
    }
    for place in (0..homes.len()).rev() {
        let (home, host) = (homes[place], table[place]);
        if host != home && leave[home] > 0.0 && loads.has_room(home, host) {
            table[place] = home;
            leave[home] -= 1.0;
        }
    }
}

fn away<'a>(table: &'a [usize], homes: &'a [usize]) -> impl Iterator<Item = (usize, usize)> {
    (0..homes.len())
        .filter(|&place| table[place] != homes[place])
        .map(|place| (place, table[place]))
}
