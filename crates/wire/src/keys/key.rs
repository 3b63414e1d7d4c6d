//! The secret that all nodes share, and the keys derived from it.

use std::fmt;
use std::str::FromStr;

use super::tag::{LccpKey, siphash24};
use crate::Error;

/// The cluster's secret: 32 bytes, not all zero.
///
/// The secret itself is never used as a key. Each use has a key of its own, so a key that leaks reveals nothing about
/// another one. With A and B the two 16-byte halves of the secret, `||` for joining bytes, and `label` the use's name
/// in ASCII without a terminator:
///
/// ```text
/// k0 = SipHash-2-4(key = A, label || 0x01 || B)
/// k1 = SipHash-2-4(key = B, label || 0x02 || A)
/// ```
///
/// k0 and k1 are the two words of a SipHash key as in the reference implementation: its first and
/// last 8 bytes, little-endian. Labels are `baton cookie`, and for the two halves of the key of
/// channels `baton forwarding 1` and `baton forwarding 2`.
///
/// The keys of messages between nodes, and the key of hashes, are handed out to nodes that do not know the secret. They
/// are derived from it by HMAC-SHA-256: see [`ClusterKey::pair`] and [`ClusterKey::hash_key`].
///
/// ```
/// let text = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
/// let key: baton_wire::ClusterKey = text.parse()?;
/// assert_eq!(format!("{key:?}"), "ClusterKey(secret)");
/// # Ok::<(), baton_wire::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ClusterKey {
    halves: [[u8; 16]; 2],
}

impl ClusterKey {
    /// The key of these bytes.
    ///
    /// # Errors
    /// [`Error::KeyZero`] if all bytes are zero.
    pub fn from_bytes(bytes: [u8; 32]) -> Result<Self, Error> {
        if bytes == [0; 32] {
            return Err(Error::KeyZero);
        }
        let mut halves = [[0; 16]; 2];
        halves[0].copy_from_slice(&bytes[..16]);
        halves[1].copy_from_slice(&bytes[16..]);
        Ok(Self { halves })
    }

    /// The key under which a CS makes its SYN cookies.
    pub fn cookie(&self) -> CookieKey {
        CookieKey(self.derive(b"baton cookie"))
    }

    /// The secret by which the ends of a channel of the forwarding network prove who they are.
    pub fn forwarding(&self) -> ForwardingKey {
        let mut bytes = [0; 32];
        let labels: [&[u8]; 2] = [b"baton forwarding 1", b"baton forwarding 2"];
        let words = labels.map(|label| self.derive(label));
        for (bytes, word) in bytes.chunks_exact_mut(8).zip(words.as_flattened()) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        ForwardingKey(bytes)
    }

    /// The secret itself, for derivations that do not use SipHash.
    pub(crate) fn bytes(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(&self.halves[0]);
        bytes[16..].copy_from_slice(&self.halves[1]);
        bytes
    }

    fn derive(&self, label: &[u8]) -> [u64; 2] {
        let [a, b] = &self.halves;
        [
            siphash24(words(a), &[label, &[1], b].concat()),
            siphash24(words(b), &[label, &[2], a].concat()),
        ]
    }
}

impl FromStr for ClusterKey {
    type Err = Error;

    /// Parses 64 hex digits; white space around them is ignored, as a key file ends in a newline.
    fn from_str(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        let found = text.chars().count();
        if found != 64 {
            return Err(Error::KeyLength { found });
        }
        let mut bytes = [0; 32];
        for (at, character) in text.chars().enumerate() {
            let digit = character
                .to_digit(16)
                .ok_or(Error::KeyDigit { position: at + 1 })?;
            // A hex digit is below 16, so it fits; the high half of a byte comes first.
            bytes[at / 2] |= (digit as u8) << (4 * (1 - at % 2));
        }
        Self::from_bytes(bytes)
    }
}

/// The SipHash key of SYN cookies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CookieKey([u64; 2]);

impl CookieKey {
    /// The two words k0 and k1, for `settings.cookie_key`.
    pub const fn words(&self) -> [u64; 2] {
        self.0
    }
}

/// The secret of channels, for their challenges and the keys of their certificates.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ForwardingKey([u8; 32]);

impl ForwardingKey {
    /// The bytes of the secret, from which other keys are derived.
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// What a node shares with another one: the key in use, a second key while keys are being rotated, and which commands
/// the other node may give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys {
    /// The key with which messages are sent. It is accepted as well.
    pub current: LccpKey,
    /// A key that is accepted but never used for sending.
    pub previous: Option<LccpKey>,
    /// Whether the other node has the secret and may give commands that move other nodes' connections
    /// (`LCCP_LEADING` of `bpf/abi/lccp.h`).
    pub leads: bool,
}

impl Keys {
    /// A single key, shared with a node that may give every command.
    pub const fn only(current: LccpKey) -> Self {
        Self {
            current,
            previous: None,
            leads: true,
        }
    }

    /// The keys, the one in use first.
    pub fn all(&self) -> impl Iterator<Item = &LccpKey> {
        std::iter::once(&self.current).chain(&self.previous)
    }
}

impl fmt::Debug for ClusterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterKey(secret)")
    }
}

impl fmt::Debug for ForwardingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ForwardingKey(secret)")
    }
}

impl fmt::Debug for CookieKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CookieKey(secret)")
    }
}

fn words(half: &[u8; 16]) -> [u64; 2] {
    let whole = u128::from_le_bytes(*half);
    [whole as u64, (whole >> 64) as u64]
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: std::net::Ipv4Addr = std::net::Ipv4Addr::new(192, 0, 2, 1);
    const THERE: std::net::Ipv4Addr = std::net::Ipv4Addr::new(192, 0, 2, 11);
    const TEXT: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

    #[test]
    fn digits_become_bytes_in_order() {
        let key: ClusterKey = format!(" {}\n", TEXT.to_uppercase()).parse().unwrap();
        let bytes: Vec<u8> = key.halves.concat();
        assert_eq!(bytes, (0..32).collect::<Vec<u8>>());
    }

    #[test]
    fn errors_name_the_fault_and_not_the_key() {
        let length = TEXT[1..].parse::<ClusterKey>().unwrap_err();
        assert_eq!(length, Error::KeyLength { found: 63 });
        let digit = TEXT.replace("0a", "0g").parse::<ClusterKey>().unwrap_err();
        assert_eq!(digit, Error::KeyDigit { position: 22 });
        assert_eq!(
            "0".repeat(64).parse::<ClusterKey>().unwrap_err(),
            Error::KeyZero
        );
        assert_eq!(
            "é".repeat(64).parse::<ClusterKey>().unwrap_err(),
            Error::KeyDigit { position: 1 }
        );
        for error in [length, digit] {
            assert!(!error.to_string().contains("0102"), "{error}");
        }
    }

    #[test]
    fn no_key_is_ever_printed() {
        let key: ClusterKey = TEXT.parse().unwrap();
        let shown = format!(
            "{key:?} {:?} {:?} {:?} {:?}",
            key.pair(HERE, THERE),
            key.cookie(),
            key.forwarding(),
            Keys::only(key.pair(HERE, THERE))
        );
        assert!(!shown.contains(|c: char| c.is_ascii_digit()), "{shown}");
    }

    #[test]
    fn every_bit_of_the_secret_counts_in_every_derived_key() {
        let base: ClusterKey = TEXT.parse().unwrap();
        for bit in 0..256 {
            let mut other = base.clone();
            other.halves[bit / 128][bit % 128 / 8] ^= 1 << (bit % 8);
            for (one, two) in [
                (
                    base.pair(HERE, THERE).words(),
                    other.pair(HERE, THERE).words(),
                ),
                (base.cookie().words(), other.cookie().words()),
                (base.hash_key().words(), other.hash_key().words()),
            ] {
                assert!(one[0] != two[0] && one[1] != two[1], "bit {bit}");
            }
        }
    }
}
