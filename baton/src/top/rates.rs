//! Computes rows with rates from two answers of a node and the time between them, without I/O or a clock.

use std::{collections::HashMap, time::Duration};

use baton_node::status::{Peer, Service, Status, Tally};

/// All that is shown of one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    /// The node's name, roles, interfaces and uptime, in one line.
    pub title: String,
    /// The number of live entries in the TCP table and its capacity; only connection servers have it.
    pub table: Option<(u32, u32)>,
    /// The sum of the rates of all data servers.
    pub all: Rates,
    /// A row for each node, in the order of the configuration.
    pub nodes: Vec<NodeRow>,
    /// A row for each service, its pools and their routes.
    pub pools: Vec<PoolRow>,
    /// The counters that are not zero, by name.
    pub counters: Vec<CounterRow>,
    /// Warnings, a line each.
    pub warnings: Vec<String>,
}

/// Rates per second. A rate is `None` if there is nothing to compare with yet, or if counting has begun anew.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    pub requests: Option<f64>,
    pub bytes: Option<f64>,
    pub handovers: Option<f64>,
}

/// The row of one node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeRow {
    pub name: String,
    pub roles: String,
    pub state: String,
    /// Says whether a data server takes requests, and if not, why.
    pub health: String,
    pub cpu_permille: Option<u16>,
    pub flows: Option<u32>,
    pub rates: Rates,
}

/// The row of a pool, of a route, or of all requests of a service that no route takes.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolRow {
    pub name: String,
    pub requests: u64,
    pub rates: Rates,
    pub unavailable: u64,
}

/// The row of one counter of the programs.
#[derive(Clone, Debug, PartialEq)]
pub struct CounterRow {
    pub name: String,
    pub total: u64,
    pub rate: Option<f64>,
}

/// An earlier answer, and the time from it to the answer that is shown.
pub type Before<'a> = Option<(&'a Status, Duration)>;

impl View {
    /// Makes a view of `now`, compared with an earlier answer of the same node.
    pub fn of(now: &Status, before: Before<'_>) -> Self {
        let nodes: Vec<NodeRow> = now
            .nodes
            .iter()
            .map(|peer| node(now, peer, before))
            .collect();
        let sum = |of: fn(&Rates) -> Option<f64>| {
            let rates = nodes.iter().filter_map(|node| of(&node.rates));
            rates.reduce(|sum, rate| sum + rate)
        };
        Self {
            title: title(now),
            table: now.flows.as_ref().map(|flows| (flows.live, flows.capacity)),
            all: Rates {
                requests: sum(|rates| rates.requests),
                bytes: sum(|rates| rates.bytes),
                handovers: sum(|rates| rates.handovers),
            },
            nodes,
            pools: pools(now, before),
            counters: counters(now, before),
            warnings: now.clock_warnings(),
        }
    }
}

fn title(status: &Status) -> String {
    let xdp = status.xdp.as_ref();
    let xdp = xdp.map_or(String::new(), |mode| format!(", XDP {mode}"));
    format!(
        "{} ({}) on {}{xdp}, up {} s",
        status.node,
        status.roles.join("+"),
        status.all_interfaces(),
        status.uptime
    )
}

fn node(status: &Status, peer: &Peer, before: Before<'_>) -> NodeRow {
    let earlier = before.and_then(|(status, since)| {
        let mut nodes = status.nodes.iter();
        Some((
            nodes.find(|one| one.name == peer.name)?.tally.as_ref()?,
            since,
        ))
    });
    NodeRow {
        name: peer.name.clone(),
        roles: peer.roles.join("+"),
        state: in_a_word(if peer.draining { "drains" } else { &peer.state }).into(),
        health: health(status, peer),
        cpu_permille: peer.cpu,
        flows: peer.flows,
        rates: rates(peer.tally.as_ref(), earlier),
    }
}

/// A short form, of nine letters at most, for a state of `baton status`.
fn in_a_word(state: &str) -> &str {
    match state {
        "never heard of" => "unheard",
        "not watched here" => "-",
        state => state,
    }
}

fn health(status: &Status, peer: &Peer) -> String {
    if status
        .services
        .iter()
        .any(|service| service.taking.contains(&peer.name))
    {
        return "serves".into();
    }
    let mut out = status.services.iter().flat_map(|service| &service.out);
    out.find(|(name, _)| *name == peer.name)
        .map_or_else(|| "-".into(), |(_, why)| why.clone())
}

fn pools(now: &Status, before: Before<'_>) -> Vec<PoolRow> {
    let earlier: HashMap<String, &Tally> = before
        .iter()
        .flat_map(|(status, _)| status.services.iter().flat_map(tallies))
        .collect();
    let all = now.services.iter().flat_map(tallies);
    all.map(|(name, tally)| {
        let earlier = before.and_then(|(_, since)| Some((*earlier.get(&name)?, since)));
        PoolRow {
            requests: tally.requests,
            rates: rates(Some(tally), earlier),
            unavailable: tally.unavailable,
            name,
        }
    })
    .collect()
}

/// All tallies of a service, by name. Routes come after their pool.
fn tallies(service: &Service) -> Vec<(String, &Tally)> {
    let mut all = Vec::new();
    all.extend(
        service
            .rest
            .as_ref()
            .map(|tally| (service.name.clone(), tally)),
    );
    for pool in &service.pools {
        let name = format!("{}/{}", service.name, pool.name);
        all.extend(pool.tally.as_ref().map(|tally| (name.clone(), tally)));
        let its_routes = service
            .routes
            .iter()
            .filter(|route| route.pool == pool.name);
        all.extend(
            its_routes.filter_map(|route| {
                Some((format!("{name} {}", route.route), route.tally.as_ref()?))
            }),
        );
    }
    all
}

fn counters(now: &Status, before: Before<'_>) -> Vec<CounterRow> {
    let moved = now.counters.iter().filter(|(_, total)| **total > 0);
    moved
        .map(|(name, total)| CounterRow {
            name: name.clone(),
            total: *total,
            rate: before.and_then(|(status, since)| {
                rate(
                    *total,
                    status.counters.get(name).copied().unwrap_or(0),
                    since,
                )
            }),
        })
        .collect()
}

fn rates(now: Option<&Tally>, before: Option<(&Tally, Duration)>) -> Rates {
    let (Some(now), Some((before, since))) = (now, before) else {
        return Rates::default();
    };
    Rates {
        requests: rate(now.requests, before.requests, since),
        bytes: rate(now.bytes, before.bytes, since),
        handovers: rate(now.handovers, before.handovers, since),
    }
}

fn rate(now: u64, before: u64, since: Duration) -> Option<f64> {
    let seconds = since.as_secs_f64();
    let moved = now.checked_sub(before)?;
    (seconds > 0.0).then(|| moved as f64 / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_node::status::example;

    /// The example status, and the same node two seconds later.
    fn moments() -> (Status, Status) {
        let before = example();
        let mut now = before.clone();
        let service = &mut now.services[0];
        for tally in [
            now.nodes[1].tally.as_mut(),
            service.pools[0].tally.as_mut(),
            service.routes[0].tally.as_mut(),
        ] {
            let tally = tally.expect("the example counts");
            tally.requests += 10;
            tally.bytes += 3000;
            tally.handovers += 1;
        }
        now.counters.insert("cs_syn".into(), 41);
        now.counters.insert("cs_forward".into(), 8);
        (before, now)
    }

    const TWO_SECONDS: Duration = Duration::from_secs(2);

    #[test]
    fn two_answers_make_rates() {
        let (before, now) = moments();
        let view = View::of(&now, Some((&before, TWO_SECONDS)));
        let rates = Rates {
            requests: Some(5.0),
            bytes: Some(1500.0),
            handovers: Some(0.5),
        };
        assert_eq!(view.nodes[1].rates, rates);
        let still = Rates {
            requests: Some(0.0),
            bytes: Some(0.0),
            handovers: Some(0.0),
        };
        assert_eq!(view.all, rates, "the others did nothing");
        let names: Vec<&str> = view.pools.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["web", "web/static", "web/static /s/"]);
        assert_eq!(view.pools[0].rates, still);
        assert_eq!(view.pools[2].rates, rates);
        let counter = |name: &str| {
            let found = view.counters.iter().find(|row| row.name == name);
            found.and_then(|row| row.rate)
        };
        assert_eq!(counter("cs_syn"), Some(20.0));
        assert_eq!(counter("cs_forward"), Some(4.0), "it was not there before");
    }

    #[test]
    fn one_answer_makes_none() {
        let (_, now) = moments();
        let view = View::of(&now, None);
        assert_eq!(view.all, Rates::default());
        assert!(view.counters.iter().all(|row| row.rate.is_none()));
        assert_eq!(view.pools[1].requests, 17);
    }

    #[test]
    fn what_begins_anew_has_no_rate() {
        let (before, now) = moments();
        let view = View::of(&before, Some((&now, TWO_SECONDS)));
        assert_eq!(view.nodes[1].rates, Rates::default());
        let view = View::of(&now, Some((&before, Duration::ZERO)));
        assert_eq!(view.all, Rates::default());
    }

    #[test]
    fn health_says_why_not() {
        let mut status = example();
        let health = |status: &Status| View::of(status, None).nodes[1].health.clone();
        assert_eq!(health(&status), "serves");
        let service = &mut status.services[0];
        service.taking.clear();
        service
            .out
            .push(("ds1".into(), "its own check fails".into()));
        assert_eq!(health(&status), "its own check fails");
        assert_eq!(View::of(&status, None).nodes[0].health, "-");
    }

    #[test]
    fn who_drains_says_so() {
        let (_, mut now) = moments();
        assert_eq!(View::of(&now, None).nodes[1].state, "alive");
        now.nodes[1].draining = true;
        assert_eq!(View::of(&now, None).nodes[1].state, "drains");
    }
}
