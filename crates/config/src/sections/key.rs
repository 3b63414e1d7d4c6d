//! What a node authenticates its messages with, as the configuration gives it: the secret that all nodes share, or
//! the keys of this node alone.

use std::net::Ipv4Addr;

use baton_wire::{ClusterKey, Error, HashKey, LccpKey};

use crate::reading::problem::Problem;
use crate::sections::node_keys::{NodeKeys, key_words};

/// The content of a key file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// The cluster's secret, from which all keys can be made.
    Secret(ClusterKey),
    /// The keys of one node. Who has them cannot speak for another node.
    Node(NodeKeys),
}

impl Key {
    /// The key that the nodes at `own` and `other` share. `None` if these are keys of a node that is not at `own`, or
    /// have none for `other`.
    pub fn pair(&self, own: Ipv4Addr, other: Ipv4Addr) -> Option<LccpKey> {
        match self {
            Self::Secret(secret) => Some(secret.pair(own, other)),
            Self::Node(keys) if keys.node == own => keys.with(other),
            Self::Node(_) => None,
        }
    }

    /// The secret; `None` if there are only the keys of one node.
    pub fn secret(&self) -> Option<&ClusterKey> {
        match self {
            Self::Secret(secret) => Some(secret),
            Self::Node(_) => None,
        }
    }

    /// The hash key that belongs to this key: made from the secret, or given with the keys of the node.
    pub(crate) fn hash_key(&self) -> HashKey {
        match self {
            Self::Secret(secret) => secret.hash_key(),
            Self::Node(keys) => keys.hash_key,
        }
    }
}

/// Parses a key from 64 hex digits, ignoring white space around them, or from what `baton key` wrote. No error repeats
/// the text.
pub(crate) fn parse_key(text: &str) -> Result<Key, Problem> {
    if NodeKeys::is_meant_by(text) {
        return NodeKeys::parse(text).map(Key::Node);
    }
    text.parse().map(Key::Secret).map_err(|error| {
        let what = match error {
            Error::KeyLength { found: 0 } => "the key is empty".into(),
            Error::KeyLength { found } => {
                format!("the key has {found} characters instead of 64 hex digits")
            }
            Error::KeyDigit { position } => {
                format!("the key's character {position} is not a hex digit")
            }
            Error::KeyZero => "the key is all zero".into(),
            other => other.to_string(),
        };
        Problem::new(what, "make one with: openssl rand -hex 32")
    })
}

/// Parses a hash key from 32 hex digits, ignoring white space around them. No error repeats the text.
pub(crate) fn parse_hash_key(text: &str) -> Result<HashKey, Problem> {
    let text = text.trim();
    let odd = text.chars().position(|digit| !digit.is_ascii_hexdigit());
    let what = match (text.chars().count(), odd) {
        (0, _) => "the hash key is empty".into(),
        (32, Some(at)) => format!("the hash key's character {} is not a hex digit", at + 1),
        (32, None) => match key_words(text) {
            Some(words) => return Ok(HashKey::from_words(words)),
            None => "the hash key is all zero".into(),
        },
        (found, _) => format!("the hash key has {found} characters instead of 32 hex digits"),
    };
    Err(Problem::new(what, "make one with: openssl rand -hex 16"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_key_is_two_words() {
        let key = parse_hash_key(" 000102030405060708090A0b0c0d0e0f\n").unwrap();
        assert_eq!(key.words(), [0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f]);
        let long = "ab".repeat(32);
        let odd = "ag".repeat(16);
        let wide = "ä".repeat(16);
        for (bad, says) in [
            ("", "is empty"),
            (" \n", "is empty"),
            ("abc", "has 3 characters instead of 32"),
            (&long, "has 64 characters instead of 32"),
            (&odd, "character 2 is not a hex digit"),
            (&wide, "has 16 characters instead of 32"),
            (&"0".repeat(32), "is all zero"),
        ] {
            let problem = parse_hash_key(bad).unwrap_err().to_string();
            assert!(problem.contains(says), "{problem}");
            assert!(bad.len() < 4 || !problem.contains(bad), "{problem}");
        }
    }

    #[test]
    fn refuses_and_never_repeats() {
        let short = "ab".repeat(31) + "a";
        let long = "ab".repeat(33);
        let odd = "ag".repeat(32);
        let wide = "ä".repeat(32);
        let zero = "0".repeat(64);
        for bad in ["", "  \n", &short, &long, &odd, &wide, &zero] {
            let problem = parse_key(bad).unwrap_err();
            assert!(bad.trim().is_empty() || !problem.to_string().contains(bad));
        }
    }
}
