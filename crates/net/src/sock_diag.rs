//! Asks the kernel about its TCP sockets: sock_diag(7).

use std::io;
use std::net::{SocketAddr, SocketAddrV4};

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_sock_diag::inet::{
    ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags,
};
use netlink_packet_sock_diag::{AF_INET, AF_INET6, IPPROTO_TCP, SockDiagMessage};
use netlink_sys::Socket;
use netlink_sys::protocols::NETLINK_SOCK_DIAG;

/// Calls `visit` with every TCP socket of an address family that is in one of `states`, with the attributes that
/// `extensions` ask for.
pub(crate) fn dump(
    family: u8,
    states: StateFlags,
    extensions: ExtensionFlags,
    mut visit: impl FnMut(&InetResponse),
) -> io::Result<()> {
    let any = if family == AF_INET {
        SocketId::new_v4()
    } else {
        SocketId::new_v6()
    };
    let request = InetRequest {
        family,
        protocol: IPPROTO_TCP,
        extensions,
        states,
        socket_id: any,
    };
    let socket = ask(request, NLM_F_DUMP)?;
    loop {
        let (datagram, _) = socket.recv_from_full()?;
        let mut rest = datagram.as_slice();
        while !rest.is_empty() {
            let message =
                NetlinkMessage::<SockDiagMessage>::deserialize(rest).map_err(io::Error::other)?;
            match message.payload {
                NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(response)) => {
                    visit(&response);
                }
                // If the kernel cannot list the sockets, it says so here.
                NetlinkPayload::Done(done) if done.code < 0 => {
                    return Err(io::Error::from_raw_os_error(done.code.saturating_neg()));
                }
                NetlinkPayload::Done(_) => return Ok(()),
                NetlinkPayload::Error(error) => return Err(error.to_io()),
                _ => {}
            }
            // Messages are padded to four bytes.
            let length = (message.header.length as usize).next_multiple_of(4);
            rest = rest.get(length..).unwrap_or_default();
        }
    }
}

/// The state of the TCP socket that a packet from `remote` to `local` would find: a connection, or else a
/// listener. `None` if there is neither.
pub(crate) fn state_of(local: SocketAddrV4, remote: SocketAddrV4) -> io::Result<Option<u8>> {
    match socket_of(local.into(), remote.into()) {
        Ok(found) => Ok(Some(found.header.state)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The TCP socket that a packet from `remote` to `local` would find. The error's kind is `NotFound` if there is none.
pub(crate) fn socket_of(local: SocketAddr, remote: SocketAddr) -> io::Result<InetResponse> {
    let request = InetRequest {
        family: if local.is_ipv4() { AF_INET } else { AF_INET6 },
        protocol: IPPROTO_TCP,
        extensions: ExtensionFlags::empty(),
        states: StateFlags::all(),
        socket_id: SocketId {
            source_port: local.port(),
            destination_port: remote.port(),
            source_address: local.ip(),
            destination_address: remote.ip(),
            interface_id: 0,
            // INET_DIAG_NOCOOKIE: any socket of these addresses.
            cookie: [0xff; 8],
        },
    };
    let (datagram, _) = ask(request, 0)?.recv_from_full()?;
    let message =
        NetlinkMessage::<SockDiagMessage>::deserialize(&datagram).map_err(io::Error::other)?;
    match message.payload {
        NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(response)) => Ok(*response),
        NetlinkPayload::Error(error) => Err(error.to_io()),
        _ => Err(io::Error::other(
            "the kernel answered with neither a socket nor an error",
        )),
    }
}

fn ask(request: InetRequest, flags: u16) -> io::Result<Socket> {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | flags;
    let mut message = NetlinkMessage::new(header, SockDiagMessage::InetRequest(request).into());
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
    socket.bind_auto()?;
    socket.connect(&netlink_sys::SocketAddr::new(0, 0))?;
    socket.send(&bytes, 0)?;
    Ok(socket)
}
