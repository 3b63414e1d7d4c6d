//! The TCP listeners of this host, from the kernel's socket diagnosis (sock_diag(7)).

use std::io;
use std::net::{IpAddr, SocketAddr};

use netlink_packet_core::Nla as _;
use netlink_packet_sock_diag::inet::nlas::Nla;
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetResponse, StateFlags};
use netlink_packet_sock_diag::{AF_INET, AF_INET6};

use crate::sock_diag::dump;
use crate::{Error, Result};

/// A listening TCP socket. A server may have many for one port (SO_REUSEPORT).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// The address that it is bound to.
    pub address: SocketAddr,
    /// Whether it is bound to `::` and takes no IPv4 (IPV6_V6ONLY).
    pub only_ipv6: bool,
    /// Whether it is the TCP side of an MPTCP listener.
    pub mptcp: bool,
    /// How many connections may wait to be accepted.
    pub backlog: u32,
    /// The number of the socket's inode, as in /proc/PID/fd.
    pub inode: u32,
}

impl Listener {
    /// Whether it takes connections to `target`, unless another listener is bound more specifically.
    pub fn takes(&self, target: SocketAddr) -> bool {
        self.address.port() == target.port()
            && match self.address.ip() {
                IpAddr::V4(own) => target.ip() == own || target.is_ipv4() && own.is_unspecified(),
                IpAddr::V6(own) if own.is_unspecified() => target.is_ipv6() || !self.only_ipv6,
                IpAddr::V6(own) => target.ip().to_canonical() == own.to_canonical(),
            }
    }
}

/// All listening TCP sockets of this network namespace, IPv4 and IPv6.
///
/// # Errors
/// [`Error::System`] if the kernel was built without INET_DIAG, or refuses.
pub fn listeners() -> Result<Vec<Listener>> {
    let list = || -> io::Result<Vec<Listener>> {
        let mut found = Vec::new();
        for family in [AF_INET, AF_INET6] {
            // The kernel reports upper layer protocols only if INFO is asked for (`inet_sk_diag_fill` in
            // net/ipv4/inet_diag.c).
            let (states, extensions) = (StateFlags::LISTEN, ExtensionFlags::INFO);
            dump(family, states, extensions, |response| {
                found.push(listener(response))
            })?;
        }
        Ok(found)
    };
    list().map_err(Error::system("list the listening sockets"))
}

/// `INET_DIAG_ULP_INFO` of include/uapi/linux/inet_diag.h: an upper layer protocol uses the socket.
const ULP_INFO: u16 = 19;
/// The value of `INET_ULP_INFO_NAME` for MPTCP, from net/mptcp/subflow.c.
const MPTCP: &[u8] = b"mptcp\0";

fn listener(response: &InetResponse) -> Listener {
    let id = &response.header.socket_id;
    Listener {
        address: SocketAddr::new(id.source_address, id.source_port),
        only_ipv6: response.nlas.contains(&Nla::SkV6Only(true)),
        mptcp: response.nlas.iter().any(is_mptcp),
        backlog: response.header.send_queue,
        inode: response.header.inode,
    }
}

fn is_mptcp(attribute: &Nla) -> bool {
    let Nla::Other(other) = attribute else {
        return false;
    };
    let mut value = vec![0; other.value_len()];
    other.emit_value(&mut value);
    other.kind() == ULP_INFO && value.windows(MPTCP.len()).any(|window| window == MPTCP)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(address: &str, only_ipv6: bool) -> Listener {
        Listener {
            address: address.parse().unwrap(),
            only_ipv6,
            mptcp: false,
            backlog: 0,
            inode: 0,
        }
    }

    #[test]
    fn who_takes_what() {
        let web = "192.0.2.100:80".parse().unwrap();
        for (address, only_ipv6) in [
            ("0.0.0.0:80", false),
            ("192.0.2.100:80", false),
            ("[::]:80", false),
            ("[::ffff:192.0.2.100]:80", false),
        ] {
            assert!(bound(address, only_ipv6).takes(web), "{address}");
        }
        for (address, only_ipv6) in [
            ("0.0.0.0:81", false),
            ("192.0.2.1:80", false),
            ("[::]:80", true),
            ("[2001:db8::1]:80", false),
        ] {
            assert!(!bound(address, only_ipv6).takes(web), "{address}");
        }
        assert!(!bound("0.0.0.0:80", false).takes("[2001:db8::1]:80".parse().unwrap()));
    }
}
