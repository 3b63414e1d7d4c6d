//! How many connections of each service this host has, by the kernel's own count (sock_diag(7)).

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddrV4};

use netlink_packet_sock_diag::AF_INET;
use netlink_packet_sock_diag::inet::{ExtensionFlags, StateFlags};

use crate::sock_diag::{dump, state_of};
use crate::{Error, Result};

/// Established connections by the local address and port that they have on this host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connections(HashMap<SocketAddrV4, u32>);

impl Connections {
    /// Counts them now. Blocks for as long as the kernel needs to walk its table.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn count() -> Result<Self> {
        let mut counts: HashMap<SocketAddrV4, u32> = HashMap::new();
        let none = ExtensionFlags::empty();
        dump(AF_INET, StateFlags::ESTABLISHED, none, |response| {
            let id = &response.header.socket_id;
            if let IpAddr::V4(address) = id.source_address {
                let local = SocketAddrV4::new(address, id.source_port);
                *counts.entry(local).or_default() += 1;
            }
        })
        .map_err(Error::system("count the established connections"))?;
        Ok(Self(counts))
    }

    /// Whether the server's end of a connection from `client` to `server`, made on this host, is a socket of
    /// this network namespace. It is not if an address translation leads the connection elsewhere.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn ends_here(client: SocketAddrV4, server: SocketAddrV4) -> Result<bool> {
        const LISTEN: u8 = 10;
        let state = state_of(server, client)
            .map_err(Error::system("look up the server's end of a connection"))?;
        Ok(state.is_some_and(|state| state != LISTEN))
    }

    /// How many there are at `local`.
    pub fn at(&self, local: SocketAddrV4) -> u32 {
        self.0.get(&local).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_connection_that_ends_here() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let v4 = |address| match address {
            std::net::SocketAddr::V4(v4) => v4,
            std::net::SocketAddr::V6(_) => panic!("bound to IPv4"),
        };
        let server = v4(listener.local_addr().unwrap());
        let client = TcpStream::connect(server).unwrap();
        let client = v4(client.local_addr().unwrap());
        let _accepted = listener.accept().unwrap();
        assert!(Connections::ends_here(client, server).unwrap());
        // Only the listener is found, as where a connection's packets are led elsewhere.
        let stranger = SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, 2), client.port());
        assert!(!Connections::ends_here(stranger, server).unwrap());
        // Not even a listener.
        let nobody = SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, 3), server.port());
        assert!(!Connections::ends_here(client, nobody).unwrap());
    }

    #[test]
    fn counts_what_is_established_at_an_address() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let std::net::SocketAddr::V4(local) = listener.local_addr().unwrap() else {
            panic!("bound to IPv4");
        };
        assert_eq!(
            Connections::count().unwrap().at(local),
            0,
            "a listener is no connection"
        );
        let clients: Vec<_> = (0..3).map(|_| TcpStream::connect(local).unwrap()).collect();
        let servers: Vec<_> = (0..3).map(|_| listener.accept().unwrap()).collect();
        assert_eq!(Connections::count().unwrap().at(local), 3);
        drop((clients, servers));
        assert_eq!(Connections::count().unwrap().at(local), 0);
    }
}
