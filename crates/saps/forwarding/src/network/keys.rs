//! The secrets that links are authenticated with.

use baton_streams::quic::secret;
use baton_wire::{ClusterKey, ForwardingKey};

/// The current key, which this end proves that it knows, and the one before it, which is accepted as well.
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

    /// The current secret.
    pub(super) fn current(&self, label: &str) -> [u8; 32] {
        secret(self.current.bytes(), label)
    }

    /// All secrets that are accepted, the current one first.
    pub(super) fn believed(&self, label: &str) -> impl Iterator<Item = [u8; 32]> {
        let keys = [Some(self.current), self.previous].into_iter().flatten();
        keys.map(move |key| secret(key.bytes(), label))
    }
}
