//! Keys of maps, from addresses.

use std::net::{Ipv4Addr, SocketAddrV4};

use crate::{ServiceKey, TcbKey};

impl ServiceKey {
    /// The key of the service at this address and port; of the cluster address alone with port 0.
    pub fn of(at: SocketAddrV4) -> Self {
        Self {
            cluster: be_word(*at.ip()),
            be_port: at.port().to_be(),
            reserved: 0,
        }
    }

    /// What this is the key of.
    pub fn socket_address(&self) -> SocketAddrV4 {
        let cluster = Ipv4Addr::from(self.cluster.to_ne_bytes());
        SocketAddrV4::new(cluster, u16::from_be(self.be_port))
    }
}

impl TcbKey {
    /// The key of the connection between these two.
    pub fn of(client: SocketAddrV4, service: SocketAddrV4) -> Self {
        Self {
            client: client.ip().to_ipv6_mapped().octets(),
            cluster: be_word(*service.ip()),
            be_client_port: client.port().to_be(),
            be_cluster_port: service.port().to_be(),
        }
    }
}

/// The address as it is in a packet.
fn be_word(address: Ipv4Addr) -> u32 {
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
}
