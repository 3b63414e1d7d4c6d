//! What a node proves itself with, as the configuration gives it: the secret that all nodes share, or the keys of this
//! node alone.

use std::net::Ipv4Addr;

use baton_wire::{ClusterKey, Error, LccpKey};

use crate::node_keys::NodeKeys;
use crate::problem::Problem;

/// What a key file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// The cluster's secret, of which all keys can be made.
    Secret(ClusterKey),
    /// The keys of one node, which are of no use to speak for another one.
    Node(NodeKeys),
}

impl Key {
    /// What the nodes at two addresses share, as far as it can be known from this.
    pub fn pair(&self, own: Ipv4Addr, other: Ipv4Addr) -> Option<LccpKey> {
        match self {
            Self::Secret(secret) => Some(secret.pair(own, other)),
            Self::Node(keys) if keys.node == own => keys.with(other),
            Self::Node(_) => None,
        }
    }

    /// The secret, if it is here.
    pub fn secret(&self) -> Option<&ClusterKey> {
        match self {
            Self::Secret(secret) => Some(secret),
            Self::Node(_) => None,
        }
    }
}

/// From 64 hex digits, with white space around them ignored, or from what `baton key` wrote. No error repeats what was
/// given.
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

#[cfg(test)]
mod tests {
    use super::*;

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
