//! The keys that this node shares with each other node: derived from the cluster's secret, or read from its own keys.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
};

use anyhow::Result;
use baton_abi::PeerKeys;
use baton_config::{Config, Node};
use baton_dataplane::Dataplane;
use baton_wire::{KeyRing, Keys, LccpKey};

use crate::local_node::LocalNode;

/// The number of nodes for which the programs' map of keys has room.
const ROOM: usize = 2 * baton_abi::MAX_PEERS as usize;

/// The keys that `me` shares with the nodes of this configuration.
pub fn key_ring(config: &Config, me: &Node) -> KeyRing {
    ring(config, me, &BTreeMap::new())
}

/// The keys that this node shares with the nodes of its configuration, and with nodes that the configuration no longer
/// names, because their connections may still have to end. The programs' map tells which nodes these are, and whether
/// they may give commands. They stay until the machine restarts, as many as there is room for. Another cluster secret
/// shuts them out at once.
pub fn key_ring_over(dataplane: &Dataplane, local: &LocalNode) -> Result<KeyRing> {
    let known = dataplane.peer_keys()?.into_iter();
    let known = known.map(|(address, keys)| (address, keys.leads != 0));
    Ok(ring(&local.config, &local.me, &known.collect()))
}

/// Tells the programs the keys of all nodes, and which of the nodes are connection servers.
pub fn write(dataplane: &Dataplane, ring: &KeyRing, config: &Config) -> Result<()> {
    let connection_servers: BTreeSet<_> = (config.connection_servers())
        .filter_map(|node| node.address.ipv4())
        .collect();
    let entries = ring.peers().map(|(address, keys)| {
        let words = |key: Option<LccpKey>| key.map_or([0; 2], |key| key.words());
        let entry = PeerKeys {
            key: [words(Some(keys.current)), words(keys.previous)],
            leads: keys.leads.into(),
            is_cs: connection_servers.contains(&address).into(),
        };
        (address, entry)
    });
    Ok(dataplane.set_peer_keys(&entries.collect())?)
}

fn ring(config: &Config, me: &Node, known: &BTreeMap<Ipv4Addr, bool>) -> KeyRing {
    let cluster = &config.cluster;
    let own = me.address.ipv4().unwrap_or(Ipv4Addr::UNSPECIFIED);
    let shared = |address: Ipv4Addr, leads: bool| {
        Some(Keys {
            current: cluster.key.pair(own, address)?,
            previous: (cluster.previous_key.as_ref()).and_then(|key| key.pair(own, address)),
            leads,
        })
    };
    let named = config.nodes.iter();
    let named = named.filter_map(|node| Some((node.address.ipv4()?, !node.own_keys)));
    let mut leads: BTreeMap<_, _> = named.collect();
    for (address, may_lead) in known {
        if leads.len() < ROOM {
            leads.entry(*address).or_insert(*may_lead);
        }
    }
    let peers = leads
        .iter()
        .filter_map(|(address, leads)| Some((*address, shared(*address, *leads)?)));
    // The configuration makes sure that a node's own keys are this node's and include one for itself.
    let to_itself = shared(own, !me.own_keys).unwrap_or(Keys {
        leads: false,
        ..Keys::only(LccpKey::from_words([0; 2]))
    });
    KeyRing::new(to_itself, peers)
}

#[cfg(test)]
mod tests {
    use baton_config::example as config;

    use super::*;

    #[test]
    fn all_nodes_and_itself() {
        let config = config();
        let me = config.node_named("ds1").expect("of the small cluster");
        let ring = key_ring(&config, me);
        assert_eq!(ring.peers().count(), config.nodes.len());
        for node in &config.nodes {
            let (own, other) = (
                me.address.ipv4().expect("of the small cluster"),
                node.address.ipv4().expect("of the small cluster"),
            );
            let there = key_ring(&config, node);
            assert_eq!(ring.with(other).current, there.with(own).current);
        }
    }

    #[test]
    fn a_node_with_only_its_own_keys_leads_nobody() {
        let mut config = config();
        let ds1 = config
            .nodes
            .iter_mut()
            .find(|node| node.name.as_str() == "ds1");
        ds1.expect("of the small cluster").own_keys = true;
        let (cs1, ds1) = (config.node_named("cs1"), config.node_named("ds1"));
        let (cs1, ds1) = (
            cs1.expect("of the small cluster"),
            ds1.expect("of the small cluster"),
        );
        let address = |node: &Node| node.address.ipv4().expect("of the small cluster");
        assert!(!key_ring(&config, cs1).with(address(ds1)).leads);
        assert!(key_ring(&config, ds1).with(address(cs1)).leads);
    }

    /// The key of a node that is gone is derived again, because the secret may have changed.
    #[test]
    fn a_node_that_is_gone_is_understood_for_a_while() {
        let config = config();
        let me = config.node_named("cs1").expect("of the small cluster");
        let gone = Ipv4Addr::new(192, 0, 2, 200);
        let ring = ring(&config, me, &[(gone, false)].into());
        let own = me.address.ipv4().expect("of the small cluster");
        let expected = config
            .cluster
            .key
            .pair(own, gone)
            .expect("of the small cluster");
        assert_eq!(ring.with(gone).current, expected);
        assert!(!ring.with(gone).leads);
    }
}
