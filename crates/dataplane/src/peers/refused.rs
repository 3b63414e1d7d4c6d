//! Messages of other nodes to the daemon that the programs have refused, so that the daemon has not heard them.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
    time::Duration,
};

use baton_abi::RefusedNode;
use libbpf_rs::MapHandle;

use crate::{
    Dataplane, Error, clock,
    maps::{entries, lookup, map_error, remove, update},
};

const MAP: &str = "refused_nodes";

/// The nodes that the programs take note of, and what was refused of each since the last look.
pub struct RefusedNodes {
    map: MapHandle,
    seen: BTreeMap<Ipv4Addr, RefusedNode>,
}

/// What was refused of one node since the last look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// The version of messages that were refused for their version.
    pub version: Option<u8>,
    /// Whether messages were refused because their tag was wrong.
    pub bad_tag: bool,
    /// Messages that were refused for their clock, although their tag was right: how many nanoseconds that clock was
    /// ahead of this node's, and how long ago the last of them came.
    pub stale: Option<(i64, Duration)>,
}

impl Dataplane {
    /// A second handle to the map, with its own memory of what was seen.
    pub fn refused_nodes(&self) -> Result<RefusedNodes, Error> {
        let map = MapHandle::try_from(&self.programs().common.refused_nodes);
        Ok(RefusedNodes {
            map: map.map_err(|error| map_error(MAP, error))?,
            seen: BTreeMap::new(),
        })
    }
}

impl RefusedNodes {
    /// Makes the programs note what they refuse of these nodes, and of no others.
    pub fn follow(&mut self, nodes: &BTreeSet<Ipv4Addr>) -> Result<(), Error> {
        let known: Vec<(u32, RefusedNode)> = entries(MAP, &self.map)?;
        let known: BTreeSet<Ipv4Addr> = known.iter().map(|(key, _)| address(*key)).collect();
        for gone in known.difference(nodes) {
            remove(MAP, &self.map, &key(*gone))?;
        }
        for new in nodes.difference(&known) {
            update(MAP, &self.map, &key(*new), &RefusedNode::default())?;
        }
        self.seen.retain(|node, _| nodes.contains(node));
        Ok(())
    }

    /// What was refused of this node since the last look. `None` if nothing was.
    pub fn look(&mut self, node: Ipv4Addr) -> Result<Option<Refusals>, Error> {
        let Some(now) = lookup::<_, RefusedNode>(MAP, &self.map, &key(node))? else {
            return Ok(None);
        };
        let before = self.seen.insert(node, now).unwrap_or_default();
        let refusals = Refusals {
            version: (now.bad_version_ns != before.bad_version_ns).then_some(now.version as u8),
            bad_tag: now.bad_tag_ns != before.bad_tag_ns,
            stale: (now.stale_ns != before.stale_ns)
                .then(|| (now.ahead_ns, clock::age(now.stale_ns))),
        };
        Ok((refusals != Refusals::default()).then_some(refusals))
    }
}

fn key(node: Ipv4Addr) -> u32 {
    u32::from_ne_bytes(node.octets())
}

fn address(key: u32) -> Ipv4Addr {
    key.to_ne_bytes().into()
}
