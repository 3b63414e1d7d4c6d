//! What a new configuration changes: which changes a running daemon can apply, and which it cannot.

use std::fmt;

use crate::config::Config;
use crate::sections::node::Node;
use crate::values::name::{InterfaceName, NodeName};

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
    let mut reasons = Vec::new();
    let mut fixed = |key, old: String, new: String| {
        if old != new {
            reasons.push(RestartReason { key, old, new });
        }
    };
    let (before, after) = (old.node_named(own.as_str()), new.node_named(own.as_str()));
    own_node(before, after, &mut fixed);
    fixed(
        "protocol",
        old.cluster.protocol.to_string(),
        new.cluster.protocol.to_string(),
    );
    fixed(
        "stream_port",
        old.cluster.stream_port.to_string(),
        new.cluster.stream_port.to_string(),
    );
    let dirs = |config: &Config| {
        let local = &config.local;
        (
            local.bpf_dir.display().to_string(),
            local.run_dir.display().to_string(),
        )
    };
    let ((old_bpf, old_run), (new_bpf, new_run)) = (dirs(old), dirs(new));
    fixed("bpf_dir", old_bpf, new_bpf);
    fixed("run_dir", old_run, new_run);
    let metrics = |config: &Config| match config.local.metrics {
        Some(address) => address.to_string(),
        None => "none".to_owned(),
    };
    fixed("metrics", metrics(old), metrics(new));
    if [before, after]
        .into_iter()
        .flatten()
        .any(|node| node.roles.is_cs())
    {
        fixed("flows", old.cs.flows.to_string(), new.cs.flows.to_string());
        fixed(
            "kept_requests",
            old.cs.kept_requests.to_string(),
            new.cs.kept_requests.to_string(),
        );
    }
    if after.is_some_and(|node| node.roles.is_cs()) {
        let switch = |config: &Config| match config.switch() {
            Some(_) => "a node with role \"switch\"".to_owned(),
            None => "no switch".to_owned(),
        };
        fixed("roles of another node", switch(old), switch(new));
        fixed("failover", candidates(old), candidates(new));
    }
    if after.is_some_and(|node| node.roles.is_io() || node.roles.is_app()) {
        fixed("forwarding", channels(old), channels(new));
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

fn own_node(
    before: Option<&Node>,
    after: Option<&Node>,
    fixed: &mut impl FnMut(&'static str, String, String),
) {
    let name = |node: Option<&Node>| node.map_or("(no node)".into(), |node| node.name.to_string());
    fixed("name", name(before), name(after));
    let (Some(before), Some(after)) = (before, after) else {
        return;
    };
    let interface = |node: &Node| match &node.interfaces[..] {
        [] => "(by address)".into(),
        some => (some.iter().map(InterfaceName::as_str).collect::<Vec<_>>()).join(", "),
    };
    fixed(
        "address",
        before.address.to_string(),
        after.address.to_string(),
    );
    fixed("interface", interface(before), interface(after));
    fixed("xdp", before.xdp.to_string(), after.xdp.to_string());
    fixed("roles", before.roles.to_string(), after.roles.to_string());
}

/// The candidates of failover and how the addresses move, as text: every candidate must have the same.
fn candidates(config: &Config) -> String {
    match &config.failover {
        None => "none".into(),
        Some(failover) => {
            let names: Vec<&str> = failover.candidates.iter().map(NodeName::as_str).collect();
            let address = failover.address;
            format!("candidates {} with address {address}", names.join(", "))
        }
    }
}

/// The settings of `[forwarding]` that both ends of a channel must have alike, and the I/O server's own, as text.
fn channels(config: &Config) -> String {
    let Some(forwarding) = &config.forwarding else {
        return "none".into();
    };
    let addresses: Vec<String> = (forwarding.addresses.iter())
        .map(ToString::to_string)
        .collect();
    let io = config.io_server().map(|node| node.address.to_string());
    format!(
        "network {} at {} port {} with addresses {} and a buffer of {} bytes",
        forwarding.network,
        io.unwrap_or_default(),
        forwarding.port,
        addresses.join(", "),
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
