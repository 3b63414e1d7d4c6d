//! The number under which each route is tallied.

use std::{collections::HashMap, net::SocketAddrV4};

use anyhow::{Context, Result};
use baton_abi::{MAX_SERVICES, TALLIED_ROUTES};
use baton_dataplane::{Dataplane, Routing, Tallied};

use super::{pools::stable_hash, routing_of};

/// The number of each route. A route keeps its number and its tally for as long as it is in the configuration, over
/// reloads and over restarts of the daemon.
#[derive(Default)]
pub struct RouteNumbers {
    numbers: HashMap<RouteId, u16>,
    /// The number that was given last. Numbers that were given up are used again as late as possible, because entries
    /// may still name them.
    last: u16,
}

/// What tells a route from others, the same in every daemon that runs here. The route's pool is not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RouteId(u64);

impl RouteId {
    /// The number by which messages name the route.
    pub fn number(self) -> u64 {
        self.0
    }

    /// The identity of this route of the service at this address.
    pub fn new(service: SocketAddrV4, route: &baton_config::Route) -> Self {
        let mut text = format!("{service} {}{}", route.host, route.path);
        if !route.conditions.is_empty() {
            text += &format!(" {:?}", route.conditions);
        }
        Self(stable_hash(&text))
    }
}

impl RouteNumbers {
    /// Begins with the numbers that an earlier daemon gave.
    pub fn over(routing: &Routing) -> Result<Self> {
        let ids = routing.route_ids()?.into_iter().zip(0..);
        let numbers = ids.filter(|(id, _)| *id != 0);
        Ok(Self {
            numbers: numbers.map(|(id, number)| (RouteId(id), number)).collect(),
            last: 0,
        })
    }

    /// The number of a route, if it has one.
    pub fn number(&self, id: RouteId) -> Option<u16> {
        self.numbers.get(&id).copied()
    }

    /// Gives exactly these routes numbers. New routes begin with an empty tally.
    pub fn assign(&mut self, dataplane: &Dataplane, wanted: &[RouteId]) -> Result<()> {
        let routing = routing_of(dataplane)?;
        let gone = self.numbers.extract_if(|id, _| !wanted.contains(id));
        for (_, number) in gone {
            routing.set_route_id(number, 0)?;
        }
        for id in wanted {
            if self.numbers.contains_key(id) {
                continue;
            }
            let number = self.free()?;
            dataplane.clear_tally(Tallied::Route(number))?;
            routing.set_route_id(number, id.0)?;
            self.numbers.insert(*id, number);
        }
        Ok(())
    }

    fn free(&mut self) -> Result<u16> {
        let (first, end) = (MAX_SERVICES as u16, TALLIED_ROUTES as u16);
        let next = (self.last + 1).max(first);
        let number = (next..end)
            .chain(first..next.min(end))
            .find(|number| !self.numbers.values().any(|used| used == number))
            .with_context(|| format!("no room for more than {} routes", end - first))?;
        self.last = number;
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_used_again_as_late_as_can_be() {
        let mut numbers = RouteNumbers::default();
        let first = MAX_SERVICES as u16;
        let last = TALLIED_ROUTES as u16 - 1;
        for expected in first..=last {
            assert_eq!(numbers.free().expect("one is free"), expected);
        }
        numbers.numbers.insert(RouteId(1), first);
        assert_eq!(numbers.free().expect("one is free"), first + 1);
        for number in first..=last {
            numbers.numbers.insert(RouteId(number.into()), number);
        }
        assert!(numbers.free().is_err());
    }
}
