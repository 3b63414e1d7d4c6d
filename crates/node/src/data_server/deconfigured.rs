//! Services that this data server was taken out of by a reload while it still has connections of them. Those
//! connections live on here, because no other data server can continue them.

use std::{net::SocketAddrV4, time::Duration};

use anyhow::Result;
use baton_config::{ClusterAddress, Config, NodeName, Service};
use baton_core::Moment;
use baton_net::Connections;

use crate::places::{Placed, services_with_places};

/// A service is kept at least this long, even without connections: connection servers that have not read the new
/// configuration yet may still send new ones.
const LINGER: Duration = Duration::from_secs(10);

/// The services of an earlier configuration that this node still keeps.
#[derive(Default)]
pub struct Deconfigured(Vec<Left>);

struct Left {
    at: SocketAddrV4,
    service: Service,
    since: Moment,
}

impl Deconfigured {
    /// Notes the services in `before` that are not in `after`. Services that came back are no longer leaving.
    pub fn note(
        &mut self,
        now: Moment,
        before: &[(SocketAddrV4, Service)],
        after: &[(SocketAddrV4, &Service)],
    ) {
        let is_served = |at: SocketAddrV4| after.iter().any(|(served, _)| *served == at);
        self.0.retain(|left| !is_served(left.at));
        for (at, service) in before.iter().filter(|(at, _)| !is_served(*at)) {
            self.0.push(Left {
                at: *at,
                service: service.clone(),
                since: now,
            });
        }
    }

    /// Returns all services that this node, called `name`, serves, and the leaving ones. A leaving service that is
    /// still configured is returned as it is configured now, so that its connections go to the data servers that serve
    /// it now.
    pub fn held<'a>(&'a self, config: &'a Config, name: &NodeName) -> Result<Vec<Placed<'a>>> {
        let all = services_with_places(config.services.iter())?;
        let mut held = services_with_places(config.services_of(name))?;
        held.extend(self.services().map(|(at, old)| {
            let now = all.iter().find(|(placed, _)| *placed == at);
            (at, now.map_or(old, |(_, service)| *service))
        }));
        Ok(held)
    }

    /// Returns the leaving services with their places, as they were configured.
    pub fn services(&self) -> impl Iterator<Item = (SocketAddrV4, &Service)> {
        self.0.iter().map(|left| (left.at, &left.service))
    }

    /// Returns the cluster addresses that connections of leaving services need.
    pub fn addresses(&self) -> impl Iterator<Item = ClusterAddress> {
        self.0.iter().map(|left| left.service.address)
    }

    /// Forgets the services that were kept long enough and have no connection, and returns their names.
    pub fn end(&mut self, now: Moment, connections: &Connections) -> Vec<String> {
        let is_over = |left: &Left| now.since(left.since) >= LINGER && connections.at(left.at) == 0;
        let over = self.0.extract_if(.., |left| is_over(left));
        over.map(|left| left.service.name.to_string()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn a_service_leaves_once_it_has_had_its_time_unless_it_comes_back() {
        let config = baton_config::example();
        let service = &config.services[0];
        let at = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 100), 80);
        let before = [(at, service.clone())];
        let moment = |seconds| Moment::after_epoch(Duration::from_secs(seconds));
        let none = Connections::default();

        let mut leaving = Deconfigured::default();
        leaving.note(moment(1), &before, &[]);
        assert_eq!(leaving.services().count(), 1);
        assert!(leaving.end(moment(10), &none).is_empty(), "too early");
        leaving.note(moment(10), &[], &[(at, service)]);
        assert_eq!(leaving.services().count(), 0, "it came back");
        leaving.note(moment(20), &before, &[]);
        assert_eq!(leaving.end(moment(30), &none), ["web"]);
        assert_eq!(leaving.addresses().count(), 0);
    }
}
