//! A data server as policies see it: its share of the connections, and its load, which can be compared with others.

use std::num::NonZeroU8;

use baton_wire::Permille;

use crate::slots::Slot;

/// A data server that takes new connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server<'a> {
    /// The data server's index in the programs' map of data servers.
    pub slot: Slot,
    /// The name of the data server's node, which is the same on every CS.
    pub name: &'a str,
    /// The data server's share of the connections.
    pub weight: NonZeroU8,
    /// The data server's load, if that is known. An unknown load counts as average.
    pub load: Option<Load>,
}

/// What a server has to do, as its node's HELLO tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Established connections of the service, of all its pools. One that is kept alive and idle is
    /// a connection too: it holds a place in the server, and its next request mostly comes here.
    pub connections: u32,
    /// How much of all its processors the node uses, for whatever it does.
    pub cpu: Permille,
}

/// How much of the service each of `servers` is configured to carry, 1 being the average: weights,
/// without regard to whether the operator counts them in ones or in hundreds.
pub(super) fn capacities(servers: &[Server<'_>]) -> Vec<f64> {
    let weights = || servers.iter().map(|server| f64::from(server.weight.get()));
    let average = weights().sum::<f64>() / servers.len() as f64;
    weights().map(|weight| weight / average).collect()
}

/// The average per capacity of the values that are known; `None` if none is. The values are totals of a server,
/// such as connections, so their sum is divided by the sum of the capacities of the servers whose values are
/// known.
pub(super) fn average_per_capacity(
    values: impl Iterator<Item = (Option<f64>, f64)>,
) -> Option<f64> {
    let (sum, capacity) = values
        .filter_map(|(value, capacity)| Some((value?, capacity)))
        .fold((0.0, 0.0), |(sum, all), (value, capacity)| {
            (sum + value, all + capacity)
        });
    (capacity > 0.0).then(|| sum / capacity)
}

/// Names and weights, as a Maglev table wants them.
pub(super) fn named<'a>(servers: &[Server<'a>]) -> Vec<(&'a str, NonZeroU8)> {
    servers
        .iter()
        .map(|server| (server.name, server.weight))
        .collect()
}
