//! What is configured: data servers, and the services that they serve.

use std::collections::BTreeMap;

use baton_wire::{Address, Endpoint};

use crate::Error;

/// A configured data server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The data server's name, which is the same on every node.
    pub name: String,
    /// The data server's own address, not the cluster's.
    pub address: Address,
    /// The data server's share of new connections; with 0 it gets none.
    pub weight: u8,
}

/// A configured service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// The service's name.
    pub name: String,
    /// The cluster address and port that clients reach it at.
    pub at: Endpoint,
    /// The names of the data servers that serve the service.
    pub nodes: Vec<String>,
}

/// Data servers and services that fit together: names and addresses are unique, and all nodes that services name
/// exist.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    nodes: BTreeMap<Address, Node>,
    services: BTreeMap<Endpoint, Service>,
    members: BTreeMap<Endpoint, Vec<Address>>,
}

impl Cluster {
    /// Makes the cluster of these nodes and services.
    ///
    /// # Errors
    /// [`Error::SameName`], [`Error::SameAddress`], [`Error::SameService`], [`Error::NoSuchNode`].
    pub fn new(nodes: Vec<Node>, services: Vec<Service>) -> Result<Self, Error> {
        let mut cluster = Self::default();
        let mut addresses = BTreeMap::new();
        for node in nodes {
            if addresses.insert(node.name.clone(), node.address).is_some() {
                return Err(Error::SameName { name: node.name });
            }
            let (address, second) = (node.address, node.name.clone());
            if let Some(first) = cluster.nodes.insert(address, node) {
                return Err(Error::SameAddress {
                    first: first.name,
                    second,
                    address,
                });
            }
        }
        for service in services {
            cluster.add(service, &addresses)?;
        }
        Ok(cluster)
    }

    /// Every data server, in the order of addresses.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.values()
    }

    /// Every service, in the order of addresses and ports.
    pub fn services(&self) -> impl Iterator<Item = &Service> {
        self.services.values()
    }

    /// The data server of this address.
    pub fn node(&self, address: Address) -> Option<&Node> {
        self.nodes.get(&address)
    }

    /// The service at this address and port.
    pub fn service(&self, at: Endpoint) -> Option<&Service> {
        self.services.get(&at)
    }

    /// The data servers of the service at `at`, each once.
    pub fn members(&self, at: Endpoint) -> impl Iterator<Item = &Node> {
        self.members
            .get(&at)
            .into_iter()
            .flatten()
            .filter_map(|address| self.node(*address))
    }

    /// Whether the node of this address serves the service at `at`.
    pub fn serves(&self, address: Address, at: Endpoint) -> bool {
        self.members
            .get(&at)
            .is_some_and(|members| members.contains(&address))
    }

    fn add(&mut self, service: Service, names: &BTreeMap<String, Address>) -> Result<(), Error> {
        let at = service.at;
        let mut members = Vec::new();
        for node in &service.nodes {
            let address = *names.get(node).ok_or_else(|| Error::NoSuchNode {
                service: service.name.clone(),
                node: node.clone(),
            })?;
            if !members.contains(&address) {
                members.push(address);
            }
        }
        let second = service.name.clone();
        if let Some(first) = self.services.insert(at, service) {
            return Err(Error::SameService {
                first: first.name,
                second,
                at,
            });
        }
        self.members.insert(at, members);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, last: u8) -> Node {
        let address = std::net::Ipv4Addr::new(192, 0, 2, last).into();
        Node {
            name: name.into(),
            address,
            weight: 1,
        }
    }

    fn service(name: &str, port: u16, nodes: &[&str]) -> Service {
        let address = std::net::Ipv4Addr::new(10, 77, 0, 100).into();
        let nodes = nodes.iter().map(|&node| node.into()).collect();
        Service {
            name: name.into(),
            at: Endpoint { address, port },
            nodes,
        }
    }

    #[test]
    fn what_does_not_fit_together_is_named() {
        let error = |nodes, services| Cluster::new(nodes, services).unwrap_err().to_string();
        let same_name = error(vec![node("ds1", 1), node("ds1", 2)], vec![]);
        assert!(same_name.contains("ds1"), "{same_name}");
        let same_address = error(vec![node("ds1", 1), node("ds2", 1)], vec![]);
        assert!(
            same_address.contains("nodes ds1 and ds2 both"),
            "{same_address}"
        );
        let stranger = error(
            vec![node("ds1", 1)],
            vec![service("web", 80, &["ds1", "ds9"])],
        );
        assert!(
            stranger.contains("web") && stranger.contains("ds9"),
            "{stranger}"
        );
        let same_place = error(
            vec![],
            vec![service("web", 80, &[]), service("api", 80, &[])],
        );
        assert!(same_place.contains("services web and api"), "{same_place}");
    }

    #[test]
    fn a_node_named_twice_serves_once() {
        let services = vec![service("web", 80, &["ds1", "ds1"])];
        let cluster = Cluster::new(vec![node("ds1", 1)], services).unwrap();
        let at = cluster.services().next().unwrap().at;
        assert_eq!(cluster.members(at).count(), 1);
    }
}
