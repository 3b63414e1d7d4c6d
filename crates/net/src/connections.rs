//! How many connections of each service this host has, as the kernel counts them (sock_diag(7)).

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::ops::RangeInclusive;
use std::time::Duration;

use baton_abi::MARK_RELAY_LOCAL;
use netlink_packet_sock_diag::inet::nlas::Nla;
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetResponse, StateFlags};
use netlink_packet_sock_diag::{AF_INET, AF_INET6};

use crate::sock_diag::{dump, state_of};
use crate::{Error, Result};

/// The numbers of established connections, by their local address and port on this host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connections(HashMap<SocketAddrV4, u32>);

impl Connections {
    /// Counts the connections now. It blocks for as long as the kernel needs to walk its table.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn count() -> Result<Self> {
        let mut counts: HashMap<SocketAddrV4, u32> = HashMap::new();
        established(ExtensionFlags::empty(), |local, _, _| {
            *counts.entry(local).or_default() += 1;
        })
        .map_err(Error::system("count the established connections"))?;
        Ok(Self(counts))
    }

    /// The clients whose connections to one of `locals` have neither sent nor received data for a time within `quiet`,
    /// each with that local address.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn idle(
        locals: &HashSet<SocketAddrV4>,
        quiet: RangeInclusive<Duration>,
    ) -> Result<Vec<(SocketAddrV4, SocketAddrV4)>> {
        let mut idle = Vec::new();
        established(ExtensionFlags::INFO, |local, client, response| {
            let since_data = response.nlas.iter().find_map(|nla| match nla {
                Nla::TcpInfo(info) => since_data(info),
                _ => None,
            });
            if since_data.is_some_and(|since| quiet.contains(&since)) && locals.contains(&local) {
                idle.push((client, local));
            }
        })
        .map_err(Error::system("list the established connections"))?;
        Ok(idle)
    }

    /// Whether the server's end of a connection from `client` to `server`, made on this host, is a socket of this
    /// network namespace. It is not if an address translation leads the connection elsewhere.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn ends_here(client: SocketAddrV4, server: SocketAddrV4) -> Result<bool> {
        const LISTEN: u8 = 10;
        let state = state_of(server, client)
            .map_err(Error::system("look up the server's end of a connection"))?;
        Ok(state.is_some_and(|state| state != LISTEN))
    }

    /// How many connections there are at `local`.
    pub fn at(&self, local: SocketAddrV4) -> u32 {
        self.0.get(&local).copied().unwrap_or(0)
    }
}

/// Calls `visit` with both ends of every established connection over IPv4, including those to a dual-stack IPv6
/// listener.
fn established(
    extensions: ExtensionFlags,
    mut visit: impl FnMut(SocketAddrV4, SocketAddrV4, &InetResponse),
) -> io::Result<()> {
    for family in [AF_INET, AF_INET6] {
        let extensions = extensions.clone();
        dump(family, StateFlags::ESTABLISHED, extensions, |response| {
            // The server's end of a connection that the relay makes. The client's own connection is there as well.
            if response.nlas.contains(&Nla::Mark(MARK_RELAY_LOCAL)) {
                return;
            }
            let id = &response.header.socket_id;
            let ends = (ipv4(id.source_address), ipv4(id.destination_address));
            if let (Some(local), Some(client)) = ends {
                let local = SocketAddrV4::new(local, id.source_port);
                let client = SocketAddrV4::new(client, id.destination_port);
                visit(local, client, response);
            }
        })?;
    }
    Ok(())
}

/// How long ago data was last sent or received, by a `struct tcp_info` (include/uapi/linux/tcp.h).
fn since_data(info: &[u8]) -> Option<Duration> {
    const LAST_DATA_SENT_AT: usize = 44;
    const LAST_DATA_RECV_AT: usize = 52;
    let milliseconds = |at: usize| {
        let word = info.get(at..)?.first_chunk()?;
        Some(u32::from_ne_bytes(*word))
    };
    let (sent, received) = (
        milliseconds(LAST_DATA_SENT_AT)?,
        milliseconds(LAST_DATA_RECV_AT)?,
    );
    Some(Duration::from_millis(sent.min(received).into()))
}

fn ipv4(address: IpAddr) -> Option<Ipv4Addr> {
    match address {
        IpAddr::V4(v4) => Some(v4),
        IpAddr::V6(v6) => v6.to_ipv4_mapped(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv6Addr, TcpListener, TcpStream};

    use super::*;

    fn v4(address: std::net::SocketAddr) -> SocketAddrV4 {
        match address {
            std::net::SocketAddr::V4(v4) => v4,
            std::net::SocketAddr::V6(_) => panic!("bound to IPv4"),
        }
    }

    #[test]
    fn a_connection_that_ends_here() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let server = v4(listener.local_addr().unwrap());
        let client = TcpStream::connect(server).unwrap();
        let client = v4(client.local_addr().unwrap());
        let _accepted = listener.accept().unwrap();
        assert!(Connections::ends_here(client, server).unwrap());
        // Only the listener is found, as if a connection's packets were led elsewhere.
        let stranger = SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, 2), client.port());
        assert!(!Connections::ends_here(stranger, server).unwrap());
        // Not even a listener is found.
        let nobody = SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, 3), server.port());
        assert!(!Connections::ends_here(client, nobody).unwrap());
    }

    #[test]
    fn counts_what_is_established_at_an_address() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let local = v4(listener.local_addr().unwrap());
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
    #[test]
    fn connections_to_a_listener_for_both_are_counted() {
        let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let local = SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, 9), port);
        let client = TcpStream::connect(local).unwrap();
        let _accepted = listener.accept().unwrap();
        assert_eq!(Connections::count().unwrap().at(local), 1);
        drop(client);
    }

    #[test]
    fn idle_is_who_has_said_nothing_for_so_long() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let local = v4(listener.local_addr().unwrap());
        let stream = TcpStream::connect(local).unwrap();
        let client = v4(stream.local_addr().unwrap());
        let _accepted = listener.accept().unwrap();
        const HOUR: Duration = Duration::from_secs(3600);
        let idle = |at, least, most| Connections::idle(&HashSet::from([at]), least..=most).unwrap();
        assert_eq!(idle(local, Duration::ZERO, HOUR), [(client, local)]);
        assert_eq!(idle(local, HOUR, Duration::MAX), []);
        assert_eq!(
            idle(client, Duration::ZERO, Duration::MAX),
            [(local, client)]
        );
        let nobody = SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, 3), local.port());
        assert_eq!(idle(nobody, Duration::ZERO, HOUR), []);
    }
}
