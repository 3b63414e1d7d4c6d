//! Where this daemon runs: which node of the configuration, on which interface, with which keys.

use std::{
    fs::File,
    net::{IpAddr, Ipv4Addr},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use baton_config::{ClusterAddress, Config, Node, Xdp};
use baton_core::membership::{self, Cluster};
use baton_dataplane::{Options, Pins, XdpChoice, wants_frags};
use baton_net::{Link, Netlink, netns};
use baton_wire::{Address, Endpoint};
use nix::fcntl::{Flock, FlockArg};
use tracing::warn;

use crate::places::{endpoint, service_at};

/// This node, found in the configuration and on the machine.
pub struct LocalNode {
    /// The file the configuration came from.
    pub file: PathBuf,
    /// The whole configuration.
    pub config: Config,
    /// This machine's node.
    pub me: Node,
    /// The interface by which clients' packets come: the first one of the node.
    pub link: Link,
    /// All interfaces of the node, the one for clients first.
    pub links: Vec<Link>,
    /// The node's own address, which must be IPv4.
    pub address: Ipv4Addr,
    /// The cookie of the network namespace that the node runs in.
    pub netns: u64,
    /// The netlink socket to the kernel.
    pub netlink: Netlink,
}

impl LocalNode {
    /// Reads the configuration and finds this machine in it.
    pub async fn find(file: &Path) -> Result<Self> {
        let loaded = Config::read(file)?;
        for warning in &loaded.warnings {
            warn!("{warning}");
        }
        if !nix::unistd::Uid::effective().is_root() {
            bail!("baton node needs root: it loads BPF programs and sets addresses");
        }
        let config = loaded.config;
        let me = config.this_node(&host_name()?)?.clone();
        let netlink = Netlink::open()?;
        let links = links_of(&me, &netlink)
            .await
            .with_context(|| format!("node {} cannot use its interfaces", me.name))?;
        warn_of_address_elsewhere(&me, &links, &netlink).await;
        let link = links.first().context("a node has an interface")?.clone();
        let IpAddr::V4(address) = me.address.ip() else {
            bail!("node {}: its address must be IPv4 in this version", me.name);
        };
        Ok(Self {
            file: file.to_owned(),
            config,
            me,
            link,
            links,
            address,
            netns: netns::cookie()?,
            netlink,
        })
    }

    /// The cluster addresses that this node has to hold: as connection server or switch, those whose packets come to
    /// it ([`LocalNode::fronted`]), and as data server those of its services.
    pub fn cluster_addresses(&self) -> Vec<ClusterAddress> {
        let mut held = self.config.cluster_addresses_of(&self.me.name);
        held.extend(self.fronted());
        held.sort_unstable();
        held.dedup();
        held
    }

    /// The cluster addresses whose packets come to this node, or may come to it.
    pub fn fronted(&self) -> Vec<ClusterAddress> {
        let all = self.config.cluster_addresses().into_iter();
        all.filter(|address| self.config.fronts(&self.me, *address))
            .collect()
    }

    /// The interface that holds a cluster address: the first one if this node answers ARP for the address, else `lo`,
    /// where the LAN does not hear of it.
    pub fn holds_at(&self, address: ClusterAddress) -> &str {
        if self.config.answers_for(&self.me, address) {
            &self.link.name
        } else {
            "lo"
        }
    }

    /// The indices of the node's interfaces.
    pub fn interfaces(&self) -> Vec<u32> {
        self.links.iter().map(|link| link.index).collect()
    }

    /// The names of the node's interfaces, for messages to people.
    pub fn interface_names(&self) -> Vec<String> {
        self.links.iter().map(|link| link.name.clone()).collect()
    }

    /// What the dataplane is to load.
    pub fn options(&self) -> Options {
        Options {
            roles: self.me.roles.bits().into(),
            flows: self.config.cs.flows.get(),
            kept_requests: self.config.cs.kept_requests.get(),
            xdp: match self.me.xdp {
                Xdp::Native => XdpChoice::Native,
                Xdp::Auto => XdpChoice::Auto,
                Xdp::Generic => XdpChoice::Generic,
            },
            frags: self.me.xdp != Xdp::Generic
                && (self.links.iter()).any(|link| wants_frags(link.index, link.mtu)),
            pins: Some(Pins::new(&self.config.local.bpf_dir)),
        }
    }
}

/// The interfaces that the configuration gives a node, by their names or by the node's address. The first one is the
/// interface by which clients' packets come.
pub async fn links_of(me: &Node, netlink: &Netlink) -> Result<Vec<Link>> {
    if me.interfaces.is_empty() {
        return Ok(vec![netlink.link_with(me.address.ip()).await?]);
    }
    let mut links: Vec<Link> = Vec::new();
    for name in &me.interfaces {
        let link = netlink.link_named(name.as_str()).await?;
        let same = links.iter().find(|one| one.mac == link.mac);
        if let Some(same) = same
            && (me.roles.is_cs() || me.roles.is_switch())
        {
            bail!(
                "the interfaces {} and {name} have the same Ethernet address, but baton chooses a packet's interface \
                 by that address; give one of them another: ip link set {name} address 02:…",
                same.name
            );
        }
        links.push(link);
    }
    Ok(links)
}

/// Whether messages for a node with these interfaces reach one of its programs, if its address is on `holder`. A
/// packet for an address of the loopback interface arrives at one of the other interfaces.
pub fn is_reached(links: &[Link], holder: &Link) -> bool {
    holder.mac == [0; 6] || links.iter().any(|link| link.index == holder.index)
}

async fn warn_of_address_elsewhere(me: &Node, links: &[Link], netlink: &Netlink) {
    if let Ok(holder) = netlink.link_with(me.address.ip()).await
        && !is_reached(links, &holder)
    {
        warn!(
            "the node's address {} is on {}, where no program of baton is attached, so other nodes' messages are lost; \
             add {} to `interface`",
            me.address, holder.name, holder.name
        );
    }
}

/// The endpoint that stands for all connection servers together in a switch's membership.
pub const FRONT: Endpoint = Endpoint {
    address: Address::from_octets([0; 16]),
    port: 0,
};

/// The part of a configuration that a node's membership is about: data servers and services, or, on a
/// switch, connection servers.
pub fn cluster_of(config: &Config, me: &Node) -> Result<Cluster> {
    if me.roles.is_switch() {
        return connection_servers(config);
    }
    let nodes = config
        .data_servers()
        .map(|node| membership::Node {
            name: node.name.to_string(),
            address: node.address.ip().into(),
            weight: node.weight,
        })
        .collect();
    let services = config
        .services
        .iter()
        .map(|service| {
            Ok(membership::Service {
                name: service.name.to_string(),
                at: endpoint(service_at(service)?),
                nodes: service
                    .data_servers()
                    .into_iter()
                    .map(ToString::to_string)
                    .collect(),
            })
        })
        .collect::<Result<_>>()?;
    Ok(Cluster::new(nodes, services)?)
}

fn connection_servers(config: &Config) -> Result<Cluster> {
    let node = |node: &Node| membership::Node {
        name: node.name.to_string(),
        address: node.address.ip().into(),
        weight: 1,
    };
    let nodes: Vec<_> = config.connection_servers().map(node).collect();
    let front = membership::Service {
        name: "connection servers".into(),
        at: FRONT,
        nodes: nodes.iter().map(|node| node.name.clone()).collect(),
    };
    Ok(Cluster::new(nodes, vec![front])?)
}

/// The lock that keeps a second daemon from running the same node.
pub type Lock = Flock<File>;

/// How long a killed daemon may take to end, because the kernel has to free everything that it held.
const ENDING: Duration = Duration::from_secs(2);

/// Takes the lock in `run_dir`. The kernel frees the lock of a daemon that was killed.
pub async fn lock(run_dir: &Path) -> Result<Lock> {
    let path = run_dir.join("lock");
    let mut file =
        File::create(&path).with_context(|| format!("cannot make {}", path.display()))?;
    let begun = Instant::now();
    loop {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(lock),
            Err((again, _)) if begun.elapsed() < ENDING => file = again,
            Err((_, error)) => bail!(
                "another baton node runs here: it holds {} ({error}); end it first, or give this one another [local] run_dir and bpf_dir",
                path.display()
            ),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The path of the journal of changes to the host.
pub fn journal(config: &Config) -> PathBuf {
    config.local.run_dir.join("undo.json")
}

fn host_name() -> Result<String> {
    let name = nix::unistd::gethostname().context("cannot read the host's name")?;
    Ok(name.to_string_lossy().into_owned())
}
