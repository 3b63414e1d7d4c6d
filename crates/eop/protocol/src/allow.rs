//! The servers that a client lets itself be sent to. Without such a limit, a server could make clients talk to
//! machines that only they reach.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// The targets that a client accepts.
///
/// Without a list, a redirect may not lead to addresses that are nearer to the client than those of the server that
/// redirects. A public server may redirect to public addresses only, a private one to private and public addresses,
/// and one on this machine to any address. With a list, every server may redirect to the
/// addresses on it, and to no others.
///
/// ```
/// use eop_protocol::Allow;
///
/// let public = "192.0.2.1:80".parse()?;
/// assert!(Allow::default().check(public, "10.0.0.7:80".parse()?).is_err());
/// assert!(Allow::default().check(public, "198.51.100.7:80".parse()?).is_ok());
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allow {
    list: Vec<Prefix>,
}

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    bits: u8,
}

/// A redirect that was not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{from} redirects to {target}, which this client does not allow; add the target to the allowed addresses if that is right"
)]
pub struct NotAllowed {
    /// The server that redirects.
    pub from: SocketAddr,
    /// The server that the client was to go to.
    pub target: SocketAddr,
}

/// How near to the client an address is, the nearest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Scope {
    Never,
    Loopback,
    Link,
    Private,
    Public,
}

impl Allow {
    /// Allows these addresses only.
    pub fn only(list: Vec<Prefix>) -> Self {
        Self { list }
    }

    /// Whether the server at `from` may send the client to `target`.
    ///
    /// # Errors
    /// [`NotAllowed`] if it may not.
    pub fn check(&self, from: SocketAddr, target: SocketAddr) -> Result<(), NotAllowed> {
        let scope = Scope::of(target.ip());
        let allowed = scope != Scope::Never
            && target.port() != 0
            && if self.list.is_empty() {
                scope >= Scope::of(from.ip())
            } else {
                self.list.iter().any(|prefix| prefix.has(target.ip()))
            };
        if allowed {
            Ok(())
        } else {
            Err(NotAllowed { from, target })
        }
    }
}

impl Prefix {
    /// Makes a range of the addresses whose first `bits` bits are those of `address`. Returns `None` if the address
    /// has fewer bits.
    pub fn new(address: IpAddr, bits: u8) -> Option<Self> {
        let address = address.to_canonical();
        let most = if address.is_ipv4() { 32 } else { 128 };
        (bits <= most).then_some(Self { address, bits })
    }

    fn has(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(ours), IpAddr::V4(other)) => {
                let differs = ours.to_bits() ^ other.to_bits();
                differs.leading_zeros() >= self.bits.into()
            }
            (IpAddr::V6(ours), IpAddr::V6(other)) => {
                let differs = ours.to_bits() ^ other.to_bits();
                differs.leading_zeros() >= self.bits.into()
            }
            _ => false,
        }
    }
}

impl FromStr for Prefix {
    type Err = String;

    /// Parses `ADDRESS/BITS`, or an address alone.
    fn from_str(text: &str) -> Result<Self, String> {
        let (address, bits) = text.split_once('/').unwrap_or((text, ""));
        let wrong =
            || format!("{text:?} is not a range of addresses; write 10.0.0.0/8 or fd00::/8");
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let bits = match bits {
            "" if address.is_ipv4() => 32,
            "" => 128,
            bits => bits.parse().map_err(|_| wrong())?,
        };
        Self::new(address, bits).ok_or_else(wrong)
    }
}

impl Scope {
    fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(ip) if ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast() => {
                Self::Never
            }
            IpAddr::V4(ip) if ip.is_loopback() => Self::Loopback,
            IpAddr::V4(ip) if ip.is_link_local() => Self::Link,
            // 100.64.0.0/10 is shared by a provider's customers (RFC 6598); 0.0.0.0/8 is "this network".
            IpAddr::V4(ip) => {
                let [first, second, ..] = ip.octets();
                let shared = first == 100 && second & 0xc0 == 64;
                if ip.is_private() || shared || first == 0 {
                    Self::Private
                } else {
                    Self::Public
                }
            }
            IpAddr::V6(ip) if ip.is_unspecified() || ip.is_multicast() => Self::Never,
            IpAddr::V6(ip) if ip.is_loopback() => Self::Loopback,
            IpAddr::V6(ip) if ip.is_unicast_link_local() => Self::Link,
            IpAddr::V6(ip) if ip.is_unique_local() => Self::Private,
            IpAddr::V6(_) => Self::Public,
        }
    }
}
