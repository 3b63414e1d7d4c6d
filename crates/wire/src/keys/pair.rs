//! Keys of pairs of nodes: any two nodes share a key of their own.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::{ClusterKey, Keys, LccpKey};

impl ClusterKey {
    /// The key of messages between the nodes at two addresses, in both directions. It also gives a node's key with
    /// itself.
    ///
    /// ```text
    /// key = the first 16 bytes of HMAC-SHA-256(secret, "baton pair" || lower address || higher address)
    /// ```
    ///
    /// Addresses are 16 bytes, IPv4 as v4-mapped, and the lower one is the one whose bytes come first. The 16 bytes are
    /// the two words of a SipHash key, little-endian. Who knows some of these keys can compute none of the others.
    pub fn pair(&self, one: Ipv4Addr, other: Ipv4Addr) -> LccpKey {
        let (low, high) = (one.min(other), one.max(other));
        let addresses = [low, high].map(|address| address.to_ipv6_mapped().octets());
        LccpKey::from_words(self.hmac_words(&[b"baton pair", &addresses[0], &addresses[1]]))
    }

    /// HMAC-SHA-256 of these parts, joined, under the secret. The result is a key for the use that the parts name.
    pub fn hmac(&self, parts: &[&[u8]]) -> [u8; 32] {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.bytes()) else {
            unreachable!("HMAC takes keys of any length")
        };
        for part in parts {
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }

    /// The first 16 bytes of [`ClusterKey::hmac`] as two little-endian words.
    pub(crate) fn hmac_words(&self, parts: &[&[u8]]) -> [u64; 2] {
        let bytes = self.hmac(parts);
        let mut halves = [[0; 8]; 2];
        halves[0].copy_from_slice(&bytes[..8]);
        halves[1].copy_from_slice(&bytes[8..16]);
        halves.map(u64::from_le_bytes)
    }
}

/// All keys that a node shares with other nodes. A copy costs next to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRing {
    own: Keys,
    peers: Arc<BTreeMap<Ipv4Addr, Keys>>,
}

impl KeyRing {
    /// A key ring. `own` has the keys of the node's messages to itself, which no other node knows.
    pub fn new(own: Keys, peers: impl IntoIterator<Item = (Ipv4Addr, Keys)>) -> Self {
        Self {
            own,
            peers: Arc::new(peers.into_iter().collect()),
        }
    }

    /// The keys that are shared with the node at this address. For an address that belongs to no node it returns the
    /// node's own keys: its programs use these for what they pass up to its daemon in a client's name, and nobody else
    /// can.
    pub fn with(&self, address: Ipv4Addr) -> Keys {
        self.peer(address).unwrap_or(self.own)
    }

    /// The keys that are shared with the node at this address; `None` if the address belongs to no node.
    pub fn peer(&self, address: Ipv4Addr) -> Option<Keys> {
        self.peers.get(&address).copied()
    }

    /// All shared keys, by the other node's address.
    pub fn peers(&self) -> impl Iterator<Item = (Ipv4Addr, Keys)> {
        self.peers.iter().map(|(address, keys)| (*address, *keys))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(last: u8) -> Ipv4Addr {
        Ipv4Addr::new(192, 0, 2, last)
    }

    #[test]
    fn every_pair_has_its_own_key_in_both_directions() {
        let secret = ClusterKey::from_bytes([7; 32]).unwrap();
        let mut seen = Vec::new();
        for one in 1..20 {
            for other in one..20 {
                let key = secret.pair(at(one), at(other));
                assert!(key == secret.pair(at(other), at(one)));
                assert!(!seen.contains(&key.words()), "{one} and {other}");
                seen.push(key.words());
            }
        }
    }

    #[test]
    fn strangers_share_nothing_with_anybody() {
        let secret = ClusterKey::from_bytes([7; 32]).unwrap();
        let shared = |one, other| Keys::only(secret.pair(at(one), at(other)));
        let ring = KeyRing::new(shared(1, 1), [(at(1), shared(1, 1)), (at(2), shared(1, 2))]);
        assert_eq!(ring.with(at(2)), shared(1, 2));
        assert_eq!(ring.with(at(9)), shared(1, 1));
        assert_eq!(ring.peer(at(2)), Some(shared(1, 2)));
        assert_eq!(ring.peer(at(9)), None);
        assert_eq!(ring.peers().count(), 2);
    }
}
