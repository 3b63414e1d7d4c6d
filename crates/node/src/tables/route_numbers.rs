//! The number under which each route is tallied.

use std::net::SocketAddrV4;

use anyhow::{Context, Result};
use baton_abi::{MAX_SERVICES, TALLIED_ROUTES};
use baton_dataplane::{Dataplane, Routing, Tallied};

use super::{numbers::Numbers, pools::stable_hash, routing_of};

/// The number of each route. A route keeps its number and its tally for as long as it is in the configuration, over
/// reloads and over restarts of the daemon.
pub struct RouteNumbers(Numbers<RouteId>);

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
        let baton_config::Conditions {
            regex,
            method,
            header,
            cookie,
            query,
            alpn,
        } = &route.conditions;
        // No release may write the same route in another way. So what is new is added only where it is set.
        if !route.conditions.is_empty() {
            text += &format!(
                " Conditions {{ regex: {regex:?}, method: {method:?}, header: {header:?}, cookie: {cookie:?}, query: {query:?} }}"
            );
        }
        if let Some(alpn) = alpn {
            text += &format!(" alpn {alpn:?}");
        }
        Self(stable_hash(&text))
    }
}

impl RouteNumbers {
    /// Begins with the numbers that an earlier daemon gave.
    pub fn over(routing: &Routing) -> Result<Self> {
        let ids = routing.route_ids()?.into_iter().zip(0..);
        let numbers = ids.filter(|(id, _)| *id != 0);
        Ok(Self::with(
            numbers.map(|(id, number)| (RouteId(id), number)),
        ))
    }

    /// Begins with these numbers of routes. The first numbers stand for services.
    pub fn with(given: impl IntoIterator<Item = (RouteId, u16)>) -> Self {
        let all = MAX_SERVICES as u16..TALLIED_ROUTES as u16; // below 2^16
        Self(Numbers::over(all, given))
    }

    /// The number of a route, if it has one.
    pub fn number(&self, id: RouteId) -> Option<u16> {
        self.0.get(&id)
    }

    /// Gives exactly these routes numbers. New routes begin with an empty tally.
    pub fn assign(&mut self, dataplane: &Dataplane, wanted: &[RouteId]) -> Result<()> {
        let routing = routing_of(dataplane)?;
        for number in self.0.keep(wanted) {
            routing.set_route_id(number, 0)?;
        }
        for id in wanted {
            if self.0.get(id).is_some() {
                continue;
            }
            let most = TALLIED_ROUTES - MAX_SERVICES;
            let number = (self.0.give(*id))
                .with_context(|| format!("no room for more than {most} routes"))?;
            dataplane.clear_tally(Tallied::Route(number))?;
            routing.set_route_id(number, id.0)?;
        }
        Ok(())
    }
}
