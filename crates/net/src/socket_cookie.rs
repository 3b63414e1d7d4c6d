//! Finds the socket of this host at the other end of a connection over loopback.

use std::io;
use std::net::SocketAddr;

use netlink_packet_core::{NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, SocketId, StateFlags};
use netlink_packet_sock_diag::{AF_INET, AF_INET6, IPPROTO_TCP, SockDiagMessage};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use netlink_sys::{Socket, SocketAddr as NetlinkAddr};

use crate::{Error, Result};

/// The number by which the kernel identifies the socket at `local` that is connected to `remote`, as
/// `bpf_get_socket_cookie()` returns it. IPv4 addresses also find IPv6 sockets that use IPv4.
///
/// # Errors
/// [`Error::System`], with kind `NotFound` if there is no such socket.
pub fn socket_cookie(local: SocketAddr, remote: SocketAddr) -> Result<u64> {
    ask(local, remote).map_err(Error::system(format!(
        "look up the socket at {local} connected to {remote}"
    )))
}

fn ask(local: SocketAddr, remote: SocketAddr) -> io::Result<u64> {
    let family = if local.is_ipv4() { AF_INET } else { AF_INET6 };
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST;
    let request = InetRequest {
        family,
        protocol: IPPROTO_TCP,
        extensions: ExtensionFlags::empty(),
        states: StateFlags::all(),
        socket_id: SocketId {
            source_port: local.port(),
            destination_port: remote.port(),
            source_address: local.ip(),
            destination_address: remote.ip(),
            interface_id: 0,
            cookie: [0xff; 8],
        },
    };
    let mut message = NetlinkMessage::new(header, SockDiagMessage::InetRequest(request).into());
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);

    let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
    socket.bind_auto()?;
    socket.connect(&NetlinkAddr::new(0, 0))?;
    socket.send(&bytes, 0)?;
    let (datagram, _) = socket.recv_from_full()?;
    let message =
        NetlinkMessage::<SockDiagMessage>::deserialize(&datagram).map_err(io::Error::other)?;
    match message.payload {
        NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(response)) => {
            Ok(u64::from_ne_bytes(response.header.socket_id.cookie))
        }
        NetlinkPayload::Error(error) => Err(error.to_io()),
        _ => Err(io::Error::from(io::ErrorKind::InvalidData)),
    }
}
