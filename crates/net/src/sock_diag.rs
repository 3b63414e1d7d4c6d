//! Asking the kernel about its TCP sockets: sock_diag(7).

use std::io;

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_sock_diag::inet::{
    ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags,
};
use netlink_packet_sock_diag::{AF_INET, IPPROTO_TCP, SockDiagMessage};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use netlink_sys::{Socket, SocketAddr};

/// Shows `visit` every TCP socket of an address family that is in one of `states`, with what
/// `extensions` ask for.
pub(crate) fn dump(
    family: u8,
    states: StateFlags,
    extensions: ExtensionFlags,
    mut visit: impl FnMut(&InetResponse),
) -> io::Result<()> {
    let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    socket.send(&request(family, states, extensions), 0)?;
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

fn request(family: u8, states: StateFlags, extensions: ExtensionFlags) -> Vec<u8> {
    let any = if family == AF_INET {
        SocketId::new_v4()
    } else {
        SocketId::new_v6()
    };
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    let request = InetRequest {
        family,
        protocol: IPPROTO_TCP,
        extensions,
        states,
        socket_id: any,
    };
    let mut message = NetlinkMessage::new(header, SockDiagMessage::InetRequest(request).into());
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}
