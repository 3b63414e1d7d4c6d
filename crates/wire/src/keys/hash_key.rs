//! The key under which the cluster hashes paths and clients' addresses.

use std::fmt;

use crate::{ClusterKey, siphash24};

/// The SipHash key of the hashes that choose servers, remember answers and name large files. Nobody without it can
/// choose paths or addresses whose hashes collide.
///
/// All connection servers, switches and data servers of a cluster must have the same key. It authenticates nothing: who
/// knows it can speak for no node.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HashKey([u64; 2]);

impl HashKey {
    /// The key of these two words.
    pub const fn from_words(words: [u64; 2]) -> Self {
        Self(words)
    }

    /// The two words k0 and k1, for `settings.hash_key`.
    pub const fn words(&self) -> [u64; 2] {
        self.0
    }

    /// The seed of the 32-bit hash of clients' addresses, for `settings.hash_seed` and `pool.hash_seed`.
    ///
    /// That hash is quick and not one-way: who sees where many clients are sent may find the seed by trying all. So the
    /// seed is derived from the key by SipHash, and reveals nothing of the key itself.
    pub fn seed(&self) -> u32 {
        siphash24(self.0, b"baton clients") as u32 // its lower half
    }
}

impl ClusterKey {
    /// The hash key of a cluster whose configuration gives none.
    ///
    /// ```text
    /// key = the first 16 bytes of HMAC-SHA-256(secret, "baton hash")
    /// ```
    ///
    /// The 16 bytes are the two words of a SipHash key, little-endian. Who knows them cannot compute any other key of
    /// the secret.
    pub fn hash_key(&self) -> HashKey {
        HashKey(self.hmac_words(&[b"baton hash"]))
    }
}

impl fmt::Debug for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HashKey(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_secret_is_another_key_and_seed() {
        let [one, other] = [5, 6].map(|byte| ClusterKey::from_bytes([byte; 32]).unwrap());
        assert!(one.hash_key() == one.hash_key());
        assert!(one.hash_key() != other.hash_key());
        assert_ne!(one.hash_key().seed(), other.hash_key().seed());
    }

    #[test]
    fn it_is_none_of_the_other_keys_and_never_printed() {
        let secret = ClusterKey::from_bytes([5; 32]).unwrap();
        let nobody = std::net::Ipv4Addr::UNSPECIFIED;
        let words = secret.hash_key().words();
        assert_ne!(words, secret.cookie().words());
        assert_ne!(words, secret.pair(nobody, nobody).words());
        assert_eq!(format!("{:?}", secret.hash_key()), "HashKey(secret)");
    }
}
