//! What a new configuration changes: which changes a running daemon can apply, and which it cannot.

use std::fmt;

use crate::config::Config;
use crate::sections::node::Node;
use crate::sections::roles::Roles;
use crate::values::name::NodeName;

/// What of a new configuration a reload has to apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changes {
    /// A key was added, removed or replaced, or was swapped with the previous one.
    pub keys: bool,
    /// How many nodes are new or changed.
    pub nodes: usize,
    /// How many services are new or changed. A service has also changed if only its pools or routes have.
    pub services: usize,
}

/// A change that only a restart of this node's daemon applies. It is displayed as a sentence without a
/// full stop that names the key, the old value and the new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestartReason {
    /// The key as it is written in the file.
    pub key: &'static str,
    /// Its value in the running configuration.
    pub old: String,
    /// Its value in the new one.
    pub new: String,
}

impl fmt::Display for RestartReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, old, new } = self;
        write!(
            f,
            "{key} changed from {old} to {new}, which needs a restart of the daemon"
        )
    }
}

/// What changes for the node `own` when `new` replaces `old`; `None` if they are the same.
///
/// # Errors
/// Every reason why the running daemon cannot apply `new`. In that case nothing of `new` should be applied: half of
/// it would be neither of the two configurations. The reasons are changes of:
///
/// - this node's own name, address, interface, `xdp` or roles,
/// - the directories, where metrics are served, the protocol, or the port of streams,
/// - on a connection server the size of the flow table or `kept_requests`, whether a switch is in front of it, or the
///   candidates and address of failover,
/// - on an I/O server or application node anything in `[forwarding]` except the policy.
pub fn diff(
    old: &Config,
    new: &Config,
    own: &NodeName,
) -> Result<Option<Changes>, Vec<RestartReason>> {
    if old == new {
        return Ok(None);
    }
    let node = |config: &Config| config.node_named(own.as_str()).cloned();
    let (before, after) = (node(old), node(new));
    let mut reasons = Vec::new();
    let mut fixed = |key, what: &dyn Fn(&Config) -> String| {
        let (old, new) = (what(old), what(new));
        if old != new {
            reasons.push(RestartReason { key, old, new });
        }
    };
    fixed("name", &|config| {
        node(config).map_or("(no node)".into(), |node| node.name.to_string())
    });
    if before.is_some() && after.is_some() {
        let mut of_node = |key, what: fn(&Node) -> String| {
            fixed(key, &|config| {
                node(config).as_ref().map_or(String::new(), what)
            });
        };
        of_node("address", |node| node.address.to_string());
        of_node("interface", interfaces);
        of_node("xdp", |node| node.xdp.to_string());
        of_node("roles", |node| node.roles.to_string());
    }
    fixed("protocol", &|config| config.cluster.protocol.to_string());
    fixed("stream_port", &|config| {
        config.cluster.stream_port.to_string()
    });
    fixed("bpf_dir", &|config| {
        config.local.bpf_dir.display().to_string()
    });
    fixed("run_dir", &|config| {
        config.local.run_dir.display().to_string()
    });
    fixed("tls_user", &|config| config.local.tls_user.clone());
    fixed("metrics", &|config| {
        let metrics = config.local.metrics;
        metrics.map_or("none".into(), |address| address.to_string())
    });
    if [&before, &after]
        .into_iter()
        .flatten()
        .any(|node| node.roles.is_cs())
    {
        fixed("flows", &|config| config.cs.flows.to_string());
        fixed("kept_requests", &|config| {
            config.cs.kept_requests.to_string()
        });
    }
    let roles = after.map(|node| node.roles);
    if roles.is_some_and(Roles::is_cs) {
        fixed("roles of another node", &|config| match config.switch() {
            Some(_) => "a node with role \"switch\"".into(),
            None => "no switch".into(),
        });
        fixed("failover", &candidates);
    }
    if roles.is_some_and(|roles| roles.is_io() || roles.is_app()) {
        fixed("forwarding", &channels);
    }
    if !reasons.is_empty() {
        return Err(reasons);
    }
    Ok(Some(Changes {
        keys: keys(old) != keys(new),
        nodes: new_or_changed(&old.nodes, &new.nodes),
        services: new_or_changed(&old.services, &new.services),
    }))
}

fn interfaces(node: &Node) -> String {
    match &node.interfaces[..] {
        [] => "(by address)".into(),
        some => listed(some),
    }
}

fn listed<T: ToString>(items: &[T]) -> String {
    let items: Vec<String> = items.iter().map(T::to_string).collect();
    items.join(", ")
}

/// The candidates of failover and how the addresses move, as text: every candidate must have the same.
fn candidates(config: &Config) -> String {
    config.failover.as_ref().map_or("none".into(), |failover| {
        let names = listed(&failover.candidates);
        format!("candidates {names} with address {}", failover.address)
    })
}

/// The settings of `[forwarding]` that both ends of a channel must have alike, and the I/O server's own, as text.
fn channels(config: &Config) -> String {
    let Some(forwarding) = &config.forwarding else {
        return "none".into();
    };
    let io = config.io_server().map(|node| node.address.to_string());
    format!(
        "network {} at {} port {} with addresses {} and a buffer of {} bytes",
        forwarding.network,
        io.unwrap_or_default(),
        forwarding.port,
        listed(&forwarding.addresses),
        forwarding.buffer
    )
}

fn keys(config: &Config) -> impl PartialEq + '_ {
    let cluster = &config.cluster;
    (&cluster.key, &cluster.previous_key, &cluster.given_hash_key)
}

/// How many of the items of `new` are not in `old` as they are.
fn new_or_changed<T: PartialEq>(old: &[T], new: &[T]) -> usize {
    new.iter().filter(|item| !old.contains(item)).count()
}
