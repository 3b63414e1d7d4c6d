//! Tokens, which prove that a server of the cluster sent a client here.

use std::net::{IpAddr, SocketAddr};

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use baton_wire::{Clock, ClusterKey};

/// The key that tokens are made and checked with.
#[derive(Clone, PartialEq, Eq)]
pub struct EopKey([u8; 32]);

/// Proves that the client at one address may come to one target until a point in time.
///
/// ```text
///  expiry 8 (nanoseconds since 1970) | tag 16
///  tag = the first half of HMAC-SHA-256(key, "redirect" || target 16 || port 2 || expiry 8 || client 16)
/// ```
///
/// Addresses have 16 bytes; IPv4 addresses are v4-mapped. A token is valid for any number of connections until it
/// expires: a client that uses it again must have the same address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    expiry: Clock,
    tag: [u8; 16],
}

/// Why a client's token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refused {
    /// The client showed no token where one is needed.
    #[error("the client shows no token, and only redirected clients are served here")]
    Missing,
    /// The token is forged, or it is for another client or target, or was made with another key.
    #[error("the client's token is forged, or for another client or target, or of another key")]
    Forged,
    /// The token has expired, or the clocks of the two servers differ.
    #[error(
        "the client's token has expired; if that happens often, compare the clocks of the servers"
    )]
    Expired,
}

impl EopKey {
    /// Derives the key: HMAC-SHA-256(the cluster key's 32 bytes, "baton eop").
    pub fn of(cluster: &ClusterKey) -> Self {
        Self(cluster.hmac(&[b"baton eop"]))
    }
}

impl Token {
    /// Makes a token for the client at `client`, to be shown at `target` until `expiry`.
    pub fn new(key: &EopKey, target: SocketAddr, client: IpAddr, expiry: Clock) -> Self {
        let full = redirect_mac(key, target, client, expiry).finalize();
        let mut tag = [0; 16];
        tag.copy_from_slice(&full.into_bytes()[..16]);
        Self { expiry, tag }
    }

    /// Checks that the client at `client` may come with this token to `here` at `now`.
    ///
    /// # Errors
    /// [`Refused`] if it may not.
    pub fn check(
        &self,
        key: &EopKey,
        here: SocketAddr,
        client: IpAddr,
        now: Clock,
    ) -> Result<(), Refused> {
        // This takes constant time, so that it does not show how much of a guess was right.
        redirect_mac(key, here, client, self.expiry)
            .verify_truncated_left(&self.tag)
            .map_err(|_| Refused::Forged)?;
        if now > self.expiry {
            return Err(Refused::Expired);
        }
        Ok(())
    }

    /// The 24 bytes of the token on the wire.
    pub fn bytes(&self) -> [u8; 24] {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&self.expiry.as_nanos().to_be_bytes());
        bytes[8..].copy_from_slice(&self.tag);
        bytes
    }

    /// Reads a token from its bytes. [`Token::check`] says whether it is valid.
    pub fn from_bytes(bytes: [u8; 24]) -> Self {
        let [e0, e1, e2, e3, e4, e5, e6, e7, tag @ ..] = bytes;
        Self {
            expiry: Clock::from_nanos(u64::from_be_bytes([e0, e1, e2, e3, e4, e5, e6, e7])),
            tag,
        }
    }
}

fn redirect_mac(key: &EopKey, target: SocketAddr, client: IpAddr, expiry: Clock) -> Hmac<Sha256> {
    mac(
        &key.0,
        &[
            b"redirect",
            &octets(target.ip()),
            &target.port().to_be_bytes(),
            &expiry.as_nanos().to_be_bytes(),
            &octets(client),
        ],
    )
}

fn mac(key: &[u8; 32], parts: &[&[u8]]) -> Hmac<Sha256> {
    // HMAC accepts a key of any length, so this cannot fail.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
        unreachable!("HMAC takes keys of any length");
    };
    for part in parts {
        mac.update(part);
    }
    mac
}

fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

impl std::fmt::Debug for EopKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EopKey(secret)")
    }
}
