//! The whole configuration: how it is read, and the lookups that it offers.

use std::io;
use std::net::IpAddr;
use std::path::Path;

use crate::reading::document;
use crate::reading::problem::{Diagnostic, Error};
use crate::reading::read::{KeyFile, Source, read_file};
use crate::reading::report::Report;
use crate::sections::cluster::{Cluster, KeyFiles};
use crate::sections::cs::ConnectionServer;
use crate::sections::failover::Failover;
use crate::sections::forwarding::Forwarding;
use crate::sections::key::Key;
use crate::sections::local::Local;
use crate::sections::node::Node;
use crate::service::Service;
use crate::values::address::ClusterAddress;
use crate::values::name::NodeName;
use crate::whole;

/// A configuration in which everything fits together: every name that a service or `[local]` uses
/// is a node's, every service and pool has a data server, every route leads to a pool, and there is
/// a connection server, or an I/O server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// What all nodes have in common.
    pub cluster: Cluster,
    /// The settings of this machine only.
    pub local: Local,
    /// Limits of a connection server.
    pub cs: ConnectionServer,
    /// How one connection server gets the cluster addresses. `None`: all of them have the addresses at the same time.
    pub failover: Option<Failover>,
    /// The I/O server's addresses, and its channels to application nodes. `None`: the cluster has no I/O server.
    pub forwarding: Option<Forwarding>,
    /// The nodes in the order of the file. At most 256 of them are data servers.
    pub nodes: Vec<Node>,
    /// The services in the order of the file, at most 64.
    pub services: Vec<Service>,
}

/// A configuration and the warnings about it.
#[derive(Debug)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// Findings that do not keep a cluster from running, in the order of the file.
    pub warnings: Vec<Diagnostic>,
}

impl Config {
    /// Reads and parses the file at `path` and the key files it names.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if `path` cannot be read, [`Error::Invalid`] with every finding if it
    /// is wrong.
    pub fn read(path: &Path) -> Result<Loaded, Error> {
        let file = read_file(path).map_err(|cause| Error::Unreadable {
            path: path.to_owned(),
            cause,
        })?;
        let source = Source {
            path,
            text: &file.text,
            mode: Some(file.mode),
        };
        Self::parse(source, read_file)
    }

    /// Parses a configuration; `keys` is asked for each key file that it names.
    ///
    /// # Errors
    /// [`Error::Invalid`] with every finding, in the order of the file.
    pub fn parse(
        source: Source<'_>,
        keys: impl Fn(&Path) -> io::Result<KeyFile>,
    ) -> Result<Loaded, Error> {
        let mut report = Report::new(source.path, source.text);
        let config = sections(&mut report, source, &keys);
        let (errors, warnings) = report.into_findings();
        match config {
            Some(config) if errors.is_empty() => Ok(Loaded { config, warnings }),
            _ => Err(Error::Invalid(errors)),
        }
    }

    /// The node that this machine is: the one named under `[local]`, or else `host_name`.
    ///
    /// # Errors
    /// [`Error::NotInCluster`] if no node has the name, [`Error::KeysOfAnother`] if the keys are those of another node.
    pub fn this_node(&self, host_name: &str) -> Result<&Node, Error> {
        let name = self.local.name.as_ref().map_or(host_name, NodeName::as_str);
        let node = self.node_named(name).ok_or_else(|| {
            let known: Vec<&str> = self.nodes.iter().map(|node| node.name.as_str()).collect();
            Error::NotInCluster {
                name: name.to_owned(),
                known: known.join(", "),
            }
        })?;
        if let Key::Node(keys) = &self.cluster.key
            && node.address.ipv4() != Some(keys.node)
        {
            let owner = self.node_at(keys.node.into());
            return Err(Error::KeysOfAnother {
                name: name.to_owned(),
                owner: owner.map_or_else(|| keys.node.to_string(), |node| node.name.to_string()),
            });
        }
        Ok(node)
    }

    /// The node with this name.
    pub fn node_named(&self, name: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.name.as_str() == name)
    }

    /// The node whose own address this is.
    pub fn node_at(&self, address: IpAddr) -> Option<&Node> {
        self.nodes.iter().find(|node| node.address.ip() == address)
    }

    /// Every node that is a connection server, in the order of the file.
    pub fn connection_servers(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| node.roles.is_cs())
    }

    /// The switch, which is in front of the connection servers, if there is one.
    pub fn switch(&self) -> Option<&Node> {
        self.nodes.iter().find(|node| node.roles.is_switch())
    }

    /// The I/O server, which has the TCP connections of application nodes, if there is one.
    pub fn io_server(&self) -> Option<&Node> {
        self.nodes.iter().find(|node| node.roles.is_io())
    }

    /// Every node that is a data server, in the order of the file.
    pub fn data_servers(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| node.roles.is_ds())
    }

    /// The services that `node` is a data server of, even if only a pool of the service lists it, in the
    /// order of the file.
    pub fn services_of(&self, node: &NodeName) -> impl Iterator<Item = &Service> {
        self.services
            .iter()
            .filter(move |service| service.data_servers().contains(&node))
    }

    /// Whether `node` needs to know which content of data servers is large: it is a connection server, or a data
    /// server of a service with size classes whose owners judge requests.
    pub fn routes_by_size(&self, node: &Node) -> bool {
        let is_owners = |service: &Service| service.large.is_some() && service.owner_routes();
        node.roles.is_cs() || self.services_of(&node.name).any(is_owners)
    }

    /// The data servers of a service, once each: the service's own nodes, then those of its pools, in the order in
    /// which the service lists them.
    pub fn data_servers_of<'a>(&'a self, service: &'a Service) -> impl Iterator<Item = &'a Node> {
        (service.data_servers().into_iter()).filter_map(|name| self.node_named(name.as_str()))
    }

    /// Every cluster address once, in ascending order.
    pub fn cluster_addresses(&self) -> Vec<ClusterAddress> {
        addresses(self.services.iter())
    }

    /// Whether packets from clients to a cluster address can come to `node`. They can come to the switch and
    /// to each connection server of all services of that address. With `[failover]` they can come only to
    /// candidates, because each of them may be in front.
    pub fn fronts(&self, node: &Node, address: ClusterAddress) -> bool {
        let is_member = |service: &Service| match &service.connection_servers {
            None => true,
            Some(members) => members.contains(&node.name),
        };
        if self.failover.is_some() && self.failover_of(&node.name).is_none() {
            return false;
        }
        let mut of_address = (self.services.iter()).filter(|service| service.address == address);
        node.roles.is_switch() || node.roles.is_cs() && of_address.all(is_member)
    }

    /// Whether `node` is to answer ARP requests for a cluster address: the switch if there is one, else the
    /// connection servers of the address. No other node of the LAN may answer.
    pub fn answers_for(&self, node: &Node, address: ClusterAddress) -> bool {
        self.fronts(node, address) && (node.roles.is_switch() || self.switch().is_none())
    }

    /// The failover that `node` takes part in.
    pub fn failover_of(&self, node: &NodeName) -> Option<&Failover> {
        (self.failover.as_ref()).filter(|failover| failover.candidates.contains(node))
    }

    /// The cluster addresses that `node` serves as a data server, once each, in ascending order.
    pub fn cluster_addresses_of(&self, node: &NodeName) -> Vec<ClusterAddress> {
        addresses(self.services_of(node))
    }
}

fn addresses<'a>(services: impl Iterator<Item = &'a Service>) -> Vec<ClusterAddress> {
    let mut addresses: Vec<_> = services.map(|service| service.address).collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

fn sections(report: &mut Report<'_>, source: Source<'_>, files: KeyFiles<'_>) -> Option<Config> {
    let file = document::parse(report, source.text)?;
    if file.cluster.is_absent() {
        let remedy = "add it, with key_file = \"/etc/baton/cluster.key\"";
        report.error(None, "there is no [cluster] section", remedy);
    }
    let cluster = file.cluster.value();
    let cluster = cluster.and_then(|cluster| cluster.finish(report, source, files));
    let (nodes, services) = (file.node.items(), file.service.items());
    nodes.iter().for_each(|node| node.check(report));
    services.iter().for_each(|service| service.check(report));
    if let Some(forwarding) = file.forwarding.get() {
        forwarding.check(report);
    }
    if report.is_torn() {
        return None;
    }
    let local = file.local.value()?;
    let failover = whole::failover::check(report, file.failover.optional()?, nodes, services);
    let forwarding = whole::forwarding::check(report, file.forwarding.optional()?, nodes, services);
    let (nodes, services) = whole::check(
        report,
        &local.name,
        file.node.value()?,
        file.service.value()?,
    )?;
    if let Some(draft) = &cluster {
        whole::keys::check(report, draft, &nodes);
    }
    Some(Config {
        cluster: cluster?.cluster,
        local: local.finish()?,
        cs: file.cs.value()?.finish()?,
        failover: failover?,
        forwarding: forwarding?,
        nodes,
        services,
    })
}
