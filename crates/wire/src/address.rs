//! Addresses as LCCP and the maps write them: 16 bytes, IPv4 as v4-mapped.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4};

/// An IP address in 16 bytes, network order; IPv4 as `::ffff:a.b.c.d` (RFC 4291, 2.5.5.2).
///
/// The form is canonical: one address has one value, so addresses compare and hash as bytes, here
/// and as keys of the programs' maps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address([u8; 16]);

impl Address {
    /// The address in these 16 bytes of a message or a map.
    pub const fn from_octets(octets: [u8; 16]) -> Self {
        Self(octets)
    }

    /// The 16 bytes for a message or a map.
    pub const fn octets(self) -> [u8; 16] {
        self.0
    }

    /// The address in its own IP version; a v4-mapped address gives an IPv4 address.
    pub fn ip(self) -> IpAddr {
        Ipv6Addr::from(self.0).to_canonical()
    }

    /// The address if it is an IPv4 address.
    pub fn ipv4(self) -> Option<Ipv4Addr> {
        match self.ip() {
            IpAddr::V4(address) => Some(address),
            IpAddr::V6(_) => None,
        }
    }

    /// Whether this is an IPv4 address.
    pub fn is_ipv4(self) -> bool {
        self.ip().is_ipv4()
    }
}

impl From<IpAddr> for Address {
    fn from(ip: IpAddr) -> Self {
        match ip {
            IpAddr::V4(v4) => v4.into(),
            IpAddr::V6(v6) => v6.into(),
        }
    }
}

impl From<Ipv4Addr> for Address {
    fn from(ip: Ipv4Addr) -> Self {
        Self(ip.to_ipv6_mapped().octets())
    }
}

impl From<Ipv6Addr> for Address {
    fn from(ip: Ipv6Addr) -> Self {
        Self(ip.octets())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ip().fmt(f)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ip().fmt(f)
    }
}

/// An address and a TCP port: one end of a flow, or the place where a service is reached.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// The IP address.
    pub address: Address,
    /// The TCP port, host order.
    pub port: u16,
}

impl From<SocketAddr> for Endpoint {
    fn from(from: SocketAddr) -> Self {
        Self {
            address: from.ip().into(),
            port: from.port(),
        }
    }
}

impl From<SocketAddrV4> for Endpoint {
    fn from(at: SocketAddrV4) -> Self {
        SocketAddr::V4(at).into()
    }
}

impl From<Endpoint> for SocketAddr {
    fn from(from: Endpoint) -> Self {
        (from.address.ip(), from.port).into()
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        SocketAddr::from(*self).fmt(f)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        SocketAddr::from(*self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv4_is_v4_mapped_and_comes_back() {
        let v4: IpAddr = "10.77.0.100".parse().unwrap();
        let address = Address::from(v4);
        assert_eq!(
            address.octets(),
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, 0, 100]
        );
        assert_eq!(address.ip(), v4);
        assert!(address.is_ipv4());
    }

    #[test]
    fn an_ipv4_address_has_one_form_however_it_was_written() {
        let v4: IpAddr = "10.77.0.100".parse().unwrap();
        let mapped: IpAddr = "::ffff:10.77.0.100".parse().unwrap();
        assert_eq!(Address::from(v4), Address::from(mapped));
    }

    #[test]
    fn endpoints_are_shown_as_socket_addresses() {
        let v4: SocketAddr = "10.77.0.100:80".parse().unwrap();
        let v6: SocketAddr = "[fd77::100]:80".parse().unwrap();
        assert_eq!(Endpoint::from(v4).to_string(), "10.77.0.100:80");
        assert_eq!(Endpoint::from(v6).to_string(), "[fd77::100]:80");
    }
}
