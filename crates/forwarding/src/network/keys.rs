//! The secrets of links.

use baton_wire::{ClusterKey, ForwardingKey};
use ring::hmac;

/// The key in use, which this end proves that it knows, and the one before it, which is believed as well.
#[derive(Clone, Debug)]
pub(crate) struct NetworkKeys {
    current: ForwardingKey,
    previous: Option<ForwardingKey>,
}

impl NetworkKeys {
    pub(crate) fn new(current: &ClusterKey, previous: Option<&ClusterKey>) -> Self {
        Self {
            current: current.forwarding(),
            previous: previous.map(ClusterKey::forwarding),
        }
    }

    /// A secret of its own for each use, of 32 bytes: HMAC-SHA256 of the use's name.
    fn derive(key: &ForwardingKey, label: &str) -> [u8; 32] {
        let key = hmac::Key::new(hmac::HMAC_SHA256, key.bytes());
        let tag = hmac::sign(&key, label.as_bytes());
        let mut bytes = [0; 32];
        // SHA-256 has 32 bytes.
        bytes.copy_from_slice(tag.as_ref());
        bytes
    }

    /// The secret in use.
    pub(super) fn current(&self, label: &str) -> [u8; 32] {
        Self::derive(&self.current, label)
    }

    /// Every one that is believed, that in use first.
    pub(super) fn believed(&self, label: &str) -> impl Iterator<Item = [u8; 32]> {
        let keys = [Some(self.current), self.previous].into_iter().flatten();
        keys.map(move |key| Self::derive(&key, label))
    }
}
