//! Proof that a server of the cluster sent this client here.

use std::net::{IpAddr, SocketAddr};

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use baton_wire::{Clock, ClusterKey};

/// The key of redirect tokens.
#[derive(Clone, PartialEq, Eq)]
pub struct EopKey([u8; 32]);

/// That the client at one address may come to one target until a point in time.
///
/// ```text
///  expiry 8 (nanoseconds since 1970) | tag 16
///  tag = the first half of HMAC-SHA-256(key, "redirect" || target 16 || port 2 || expiry 8 || client 16)
/// ```
///
/// Addresses are 16 bytes, IPv4 as v4-mapped. It is good for any number of connections until it expires:
/// whoever repeats it must have the client's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    expiry: Clock,
    tag: [u8; 16],
}

/// Why a token is not good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refused {
    /// None was shown where one is needed.
    #[error("the client shows no token, and only redirected clients are served here")]
    Missing,
    /// It was, or it is for another client or target, or made under another key.
    #[error("the client's token is forged, or for another client or target, or of another key")]
    Forged,
    /// Too late; or the clocks of the two servers differ.
    #[error(
        "the client's token has expired; if that happens often, compare the clocks of the servers"
    )]
    Expired,
}

impl EopKey {
    /// `key` = HMAC-SHA-256(the cluster key's 32 bytes, "baton eop").
    pub fn of(cluster: &ClusterKey) -> Self {
        Self(cluster.hmac(&[b"baton eop"]))
    }
}

impl Token {
    /// For the client at `client`, to be shown at `target` until `expiry`.
    pub fn new(key: &EopKey, target: SocketAddr, client: IpAddr, expiry: Clock) -> Self {
        let full = redirect_mac(key, target, client, expiry).finalize();
        let mut tag = [0; 16];
        tag.copy_from_slice(&full.into_bytes()[..16]);
        Self { expiry, tag }
    }

    /// Whether the client at `client` may come with this to `here` at `now`.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn check(
        &self,
        key: &EopKey,
        here: SocketAddr,
        client: IpAddr,
        now: Clock,
    ) -> Result<(), Refused> {
        // In constant time: how much of a guess was right shows nowhere.
        redirect_mac(key, here, client, self.expiry)
            .verify_truncated_left(&self.tag)
            .map_err(|_| Refused::Forged)?;
        if now > self.expiry {
            return Err(Refused::Expired);
        }
        Ok(())
    }

    /// When it stops being good.
    pub const fn expiry(&self) -> Clock {
        self.expiry
    }

    /// The 24 bytes on the wire.
    pub fn bytes(&self) -> [u8; 24] {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&self.expiry.as_nanos().to_be_bytes());
        bytes[8..].copy_from_slice(&self.tag);
        bytes
    }

    /// What came; whether it is good [`Token::check`] says.
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
    // The type of SHA-256's block and a key of any length: HMAC has no wrong key.
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
