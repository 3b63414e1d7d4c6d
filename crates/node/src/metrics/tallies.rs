//! What routes, pools and data servers had to do, each as a family of counters that never decrease.

use prometheus_client::registry::Registry;

use super::{Labels, counters};
use crate::status::{Status, Tally};

/// Adds all tallies that the status has.
pub fn register(registry: &mut Registry, status: &Status) {
    let (mut routes, mut pools, mut servers) = (Vec::new(), Vec::new(), Vec::new());
    for service in &status.services {
        let of = |more: &[(&'static str, &String)]| -> Labels {
            let all = [("service", &service.name)];
            let all = all.iter().chain(more);
            all.map(|(key, value)| (*key, (*value).clone())).collect()
        };
        let none = String::new();
        pools.push((of(&[("pool", &none)]), &service.rest));
        for pool in &service.pools {
            pools.push((of(&[("pool", &pool.name)]), &pool.tally));
        }
        for route in &service.routes {
            let labels = of(&[("pool", &route.pool), ("route", &route.route)]);
            routes.push((labels, &route.tally));
        }
    }
    for peer in &status.nodes {
        servers.push((vec![("node", peer.name.clone())], &peer.tally));
    }
    add(registry, "route", &routes);
    add(registry, "pool", &pools);
    add(registry, "data_server", &servers);
}

fn add(registry: &mut Registry, of: &str, rows: &[(Labels, &Option<Tally>)]) {
    let rows: Vec<(&Labels, &Tally)> = rows
        .iter()
        .filter_map(|(labels, tally)| Some((labels, tally.as_ref()?)))
        .collect();
    let mut family = |name: &str, help: &str, values: Vec<(Labels, u64)>| {
        counters(registry, &format!("{of}_{name}"), help, values);
    };
    let each = |value: fn(&Tally) -> u64| -> Vec<(Labels, u64)> {
        let values = rows.iter();
        values
            .map(|(labels, tally)| ((*labels).clone(), value(tally)))
            .collect()
    };
    let requests = match of {
        "data_server" => {
            "Requests assigned to the data server, including those that another one answered"
        }
        _ => "Requests for the route or pool",
    };
    family(
        "requests",
        requests,
        each(|tally| tally.requests + tally.taken_back),
    );
    if of == "data_server" {
        family(
            "requests_taken_back",
            "Requests assigned to the data server that another one answered",
            each(|tally| tally.taken_back),
        );
    } else {
        family(
            "unavailable",
            "Requests that no data server was available to answer",
            each(|tally| tally.unavailable),
        );
    }
    family(
        "response_bytes",
        "Bytes of responses that clients have acknowledged",
        each(|tally| tally.bytes),
    );
    family(
        "handovers",
        "Connections handed over to another data server with a request; for a data server, those that it handed over",
        each(|tally| tally.handovers),
    );
}
