//! Keys of maps, from addresses.

use std::net::{Ipv4Addr, SocketAddrV4};

use crate::{HOST_BYTES, HostKey, PATH_BYTES, RouteKey, ServiceKey, TcbKey};

impl ServiceKey {
    /// The key of the service at this address and port. With port 0 it is the key of the cluster address alone.
    pub fn of(at: SocketAddrV4) -> Self {
        Self {
            cluster: short_address(*at.ip()),
            be_port: at.port().to_be(),
            reserved: 0,
        }
    }

    /// The address and port that this is the key of.
    pub fn socket_address(&self) -> SocketAddrV4 {
        let cluster = Ipv4Addr::from(self.cluster.to_ne_bytes());
        SocketAddrV4::new(cluster, u16::from_be(self.be_port))
    }
}

impl TcbKey {
    /// The key of the connection between this client and this service.
    pub fn of(client: SocketAddrV4, service: SocketAddrV4) -> Self {
        Self {
            client: client.ip().to_ipv6_mapped().octets(),
            cluster: short_address(*service.ip()),
            be_client_port: client.port().to_be(),
            be_cluster_port: service.port().to_be(),
        }
    }
}

impl TcbKey {
    /// The two ends of the connection, the client's and the cluster's. A client's address that is not IPv4 is given as
    /// 0.0.0.0.
    pub fn ends(&self) -> (SocketAddrV4, SocketAddrV4) {
        let client = std::net::Ipv6Addr::from(self.client);
        (
            SocketAddrV4::new(
                client.to_ipv4_mapped().unwrap_or(Ipv4Addr::UNSPECIFIED),
                u16::from_be(self.be_client_port),
            ),
            SocketAddrV4::new(
                Ipv4Addr::from(self.cluster.to_ne_bytes()),
                u16::from_be(self.be_cluster_port),
            ),
        )
    }
}

impl HostKey {
    /// The key of one host; `None` if the name is longer than the key has room for.
    pub fn exact(name: &str) -> Option<Self> {
        Self::backwards(name, 0)
    }

    /// The key of every host below `suffix`, which is the pattern without its `*.`; `None` if that is
    /// longer than the key has room for.
    pub fn below(suffix: &str) -> Option<Self> {
        Self::backwards(suffix, b'.')
    }

    fn backwards(name: &str, end: u8) -> Option<Self> {
        let mut key = Self::default();
        let bytes = name.bytes().rev().map(|byte| byte.to_ascii_lowercase());
        let letters = bytes.chain([end]);
        let length = name.len() + 1;
        if length > HOST_BYTES as usize {
            return None;
        }
        for (to, from) in key.name.iter_mut().zip(letters) {
            *to = from;
        }
        key.prefix_bits = prefix_bits(length);
        Some(key)
    }
}

impl RouteKey {
    /// The key of all request targets of a service and host that begin with `path`; `None` if that is
    /// longer than the key has room for.
    pub fn of(service: u16, host: u16, path: &[u8]) -> Option<Self> {
        let mut key = Self {
            service,
            host,
            ..Self::default()
        };
        key.path
            .get_mut(..path.len())
            .filter(|_| path.len() <= PATH_BYTES as usize)?
            .copy_from_slice(path);
        key.prefix_bits = prefix_bits(size_of_val(&service) + size_of_val(&host) + path.len());
        Some(key)
    }
}

/// The length of a key in bits, as the kernel's trie counts it.
fn prefix_bits(bytes: usize) -> u32 {
    bytes as u32 * 8 // of a key of a few hundred bytes: it fits
}

/// The address of a node or cluster in 32 bits, in the byte order that it has in a packet.
pub fn short_address(address: Ipv4Addr) -> u32 {
    u32::from_ne_bytes(address.octets())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_as_in_the_packet_and_gives_back_its_address() {
        let at: SocketAddrV4 = "10.77.0.100:80".parse().expect("an address");
        let key = ServiceKey::of(at);
        assert_eq!(key.cluster.to_ne_bytes(), [10, 77, 0, 100]);
        assert_eq!(key.be_port.to_ne_bytes(), [0, 80]);
        assert_eq!(key.socket_address(), at);
    }

    #[test]
    fn hosts_are_backwards_and_end() {
        let exact = HostKey::exact("A.b").expect("short");
        assert_eq!(&exact.name[..4], b"b.a\0");
        assert_eq!(exact.prefix_bits, 8 * 4);
        let below = HostKey::below("a.b").expect("short");
        assert_eq!(&below.name[..4], b"b.a.");
        let longest = "x".repeat(HOST_BYTES as usize - 1);
        assert!(HostKey::exact(&longest).is_some());
        assert!(HostKey::exact(&(longest + "x")).is_none());
    }

    #[test]
    fn a_route_is_service_host_and_path() {
        let key = RouteKey::of(1, 2, b"/ds1/").expect("short");
        assert_eq!(key.prefix_bits, 8 * (2 + 2 + 5));
        assert_eq!(&key.path[..6], b"/ds1/\0");
        assert!(RouteKey::of(0, 0, &[b'/'; PATH_BYTES as usize + 1]).is_none());
    }
}
