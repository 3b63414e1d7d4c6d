//! The keys of one node, made from the cluster's secret by `baton key`: the keys that the node shares with each other
//! node, and the hash key, which all nodes have. The keys that two other nodes share are not among them.
//!
//! ```text
//! # what stands behind a # is for people
//! node 192.0.2.11
//! hash 0c5de2a1f7b38946d01c6e9ab8243f75
//! 192.0.2.2 5f0c6f1be3a0d9d8a6b5d2a5f9a0c3e1 # cs1
//! 192.0.2.11 …                               # ds1 itself
//! ```
//!
//! A key is the two words of [`LccpKey`] or [`HashKey`], the first one first, in hex.

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;
use std::net::Ipv4Addr;

use baton_wire::{ClusterKey, HashKey, LccpKey};

use crate::reading::problem::Problem;
use crate::sections::node::Node;

/// The keys of one node.
#[derive(Clone, PartialEq, Eq)]
pub struct NodeKeys {
    /// The node's own address.
    pub node: Ipv4Addr,
    /// The hash key, the same at all nodes of the cluster.
    pub hash_key: HashKey,
    keys: BTreeMap<Ipv4Addr, LccpKey>,
}

/// The beginning of the first line of a node's key file.
const FIRST: &str = "node ";
/// The beginning of the line with the hash key.
const HASH: &str = "hash";

impl NodeKeys {
    /// Makes the keys of the node at `node`: one for each of `peers`, and one for messages to itself. `hash_key` is
    /// the hash key of the configuration; `None`: it is made from the secret.
    pub fn new(
        secret: &ClusterKey,
        hash_key: Option<HashKey>,
        node: Ipv4Addr,
        peers: impl IntoIterator<Item = Ipv4Addr>,
    ) -> Self {
        let peers = peers.into_iter().chain([node]);
        Self {
            node,
            hash_key: hash_key.unwrap_or_else(|| secret.hash_key()),
            keys: peers.map(|peer| (peer, secret.pair(node, peer))).collect(),
        }
    }

    /// The key that the node shares with the node at `peer`, if it has one.
    pub fn with(&self, peer: Ipv4Addr) -> Option<LccpKey> {
        self.keys.get(&peer).copied()
    }

    /// The text of the node's key file. `nodes` give the names that stand behind the keys.
    pub fn text(&self, nodes: &[Node]) -> String {
        let name = |address: &Ipv4Addr| {
            let node = nodes
                .iter()
                .find(|node| node.address.ipv4() == Some(*address));
            node.map_or("?", |node| node.name.as_str()).to_owned()
        };
        let mut text = format!(
            "# Keys of {}, made by `baton key`. Keep them as a secret: who has them can speak for this node.\n\
             {FIRST}{}\n",
            name(&self.node),
            self.node
        );
        // Writing to a String cannot fail.
        let [k0, k1] = self.hash_key.words();
        let _ = writeln!(
            text,
            "{HASH} {k0:016x}{k1:016x} # the same at all nodes of the cluster"
        );
        for (peer, key) in &self.keys {
            let [k0, k1] = key.words();
            let _ = writeln!(text, "{peer} {k0:016x}{k1:016x} # {}", name(peer));
        }
        text
    }

    /// Whether a text is meant to be a node's key file, right or wrong, and not the secret.
    pub(crate) fn is_meant_by(text: &str) -> bool {
        lines(text)
            .next()
            .is_some_and(|(_, line)| line.starts_with(FIRST))
    }

    /// Parses a node's key file. No error repeats a key.
    pub(crate) fn parse(text: &str) -> Result<Self, Problem> {
        let wrong = |line: usize, what: &str| {
            Problem::new(
                format!("line {line} of the node's keys {what}"),
                "make them anew where the secret is: baton key NODE",
            )
        };
        let mut lines = lines(text);
        let (first, line) = lines.next().unwrap_or((1, ""));
        let node = (line.strip_prefix(FIRST))
            .and_then(|address| address.trim().parse().ok())
            .ok_or_else(|| wrong(first, "does not say \"node\" and an IPv4 address"))?;
        let mut keys = BTreeMap::new();
        let mut hash_key = None;
        for (number, line) in lines {
            let (address, key) = line
                .split_once(' ')
                .ok_or_else(|| wrong(number, "is not an address and a key"))?;
            if address == HASH {
                let words = key_words(key.trim());
                let words = words.ok_or_else(|| wrong(number, "has no key of 32 hex digits"))?;
                if hash_key.replace(HashKey::from_words(words)).is_some() {
                    return Err(wrong(number, "gives a hash key for the second time"));
                }
                continue;
            }
            let address: Ipv4Addr = address
                .parse()
                .map_err(|_| wrong(number, "does not begin with an IPv4 address"))?;
            let key = key_words(key.trim())
                .ok_or_else(|| wrong(number, "has no key of 32 hex digits"))?;
            let key = LccpKey::from_words(key);
            if keys.insert(address, key).is_some() {
                return Err(wrong(number, "names an address for the second time"));
            }
        }
        if !keys.contains_key(&node) {
            return Err(wrong(first, "names a node that has no key for itself"));
        }
        let hash_key = hash_key.ok_or_else(|| {
            Problem::new(
                "the node's keys have no hash key: an older baton made them",
                "make them anew where the secret is: baton key NODE",
            )
        })?;
        Ok(Self {
            node,
            hash_key,
            keys,
        })
    }
}

impl fmt::Debug for NodeKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeKeys({})", self.node)
    }
}

/// The lines without comments and blanks around them, numbered from 1. Empty lines are left out.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..)
        .zip(text.lines())
        .map(|(number, line)| (number, line.split('#').next().unwrap_or_default().trim()))
        .filter(|(_, line)| !line.is_empty())
}

/// Parses the two words of a SipHash key, the first one first, from 32 hex digits. `None` if the text has another form,
/// or if both words are zero: that would be no key at all.
pub(crate) fn key_words(hex: &str) -> Option<[u64; 2]> {
    if hex.len() != 32 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let (k0, k1) = hex.split_at(16);
    let words = [
        u64::from_str_radix(k0, 16).ok()?,
        u64::from_str_radix(k1, 16).ok()?,
    ];
    (words != [0, 0]).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DS1: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 11);
    const CS1: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

    fn keys() -> NodeKeys {
        let secret = ClusterKey::from_bytes([5; 32]).unwrap();
        NodeKeys::new(&secret, None, DS1, [CS1])
    }

    #[test]
    fn what_is_written_is_read() {
        let text = keys().text(&[]);
        assert!(NodeKeys::is_meant_by(&text));
        assert_eq!(NodeKeys::parse(&text).unwrap(), keys());
        assert!(!NodeKeys::is_meant_by(&"ab".repeat(32)));
        assert!(!NodeKeys::is_meant_by(""));
    }

    #[test]
    fn the_hash_key_is_the_one_given_or_made_of_the_secret() {
        let secret = ClusterKey::from_bytes([5; 32]).unwrap();
        assert!(keys().hash_key == secret.hash_key());
        let given = HashKey::from_words([1, u64::MAX]);
        let keys = NodeKeys::new(&secret, Some(given), DS1, [CS1]);
        let read = NodeKeys::parse(&keys.text(&[])).unwrap();
        assert!(read.hash_key == given && read == keys);
    }

    #[test]
    fn a_pair_has_the_same_key_on_both_sides() {
        let secret = ClusterKey::from_bytes([5; 32]).unwrap();
        let other = NodeKeys::new(&secret, None, CS1, [DS1]);
        assert!(keys().with(CS1) == other.with(DS1));
        assert!(keys().with(CS1) != keys().with(DS1));
        assert!(keys().with(Ipv4Addr::new(192, 0, 2, 3)).is_none());
    }

    #[test]
    fn what_is_wrong_is_named_and_no_key_repeated() {
        let good = keys().text(&[]);
        let key = good
            .lines()
            .nth(3)
            .unwrap()
            .split(' ')
            .nth(1)
            .unwrap()
            .to_owned();
        let cases = [
            ("node nobody\n".to_owned(), "line 1"),
            (good.replace(&key, &key[1..]), "line 4"),
            (good.replace(&key, &"0".repeat(32)), "line 4"),
            (good.replace(&key, &key.replace(&key[..1], "+")), "line 4"),
            (good.replace("hash ", "hash x"), "line 3"),
            (good.replace("hash ", "hash 0x"), "line 3"),
            (format!("{good}hash {key}\n"), "hash key for the second"),
            (good.replace("hash ", "# "), "an older baton"),
            (format!("{good}192.0.2.2 {key}\n"), "second time"),
            (format!("{good}192.0.2.2\n"), "address and a key"),
            (format!("{good}cs1 {key}\n"), "IPv4 address"),
            (format!("node 192.0.2.9\n192.0.2.2 {key}\n"), "for itself"),
        ];
        for (text, says) in cases {
            let problem = NodeKeys::parse(&text).unwrap_err().to_string();
            assert!(problem.contains(says), "{problem}");
            assert!(!problem.contains(&key[2..]), "{problem}");
        }
        assert_eq!(format!("{:?}", keys()), "NodeKeys(192.0.2.11)");
    }
}
