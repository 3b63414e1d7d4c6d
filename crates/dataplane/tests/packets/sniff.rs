//! What a data server's host sends: every packet that leaves by the interface behind which clients and
//! other nodes are (see [`crate::host::own_host`]).

use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::{
    errno::Errno,
    net::if_::if_nametoindex,
    sys::{
        socket::{
            AddressFamily, LinkAddr, SockFlag, SockProtocol, SockType, recvfrom, setsockopt,
            socket, sockopt::ReceiveTimeout,
        },
        time::{TimeVal, TimeValLike as _},
    },
};

use crate::read::Packet;

pub struct Wire {
    socket: OwnedFd,
    /// The index of the interface at which everything arrives that is sent on [`Wire::interface`].
    end: usize,
}

impl Wire {
    /// Opens a socket that misses nothing from here on.
    pub fn tapped() -> Self {
        let socket = socket(
            AddressFamily::Packet,
            SockType::Raw,
            SockFlag::empty(),
            SockProtocol::EthAll,
        )
        .unwrap();
        setsockopt(&socket, ReceiveTimeout, &TimeVal::seconds(5)).unwrap();
        let end = if_nametoindex("nobody").unwrap() as usize;
        Self { socket, end }
    }

    /// The interface behind which clients and other nodes are.
    pub fn interface() -> u32 {
        if_nametoindex("clients").unwrap()
    }

    /// Returns the next IPv4 packet, within five seconds. Other packets are the kernel's own, and are passed over.
    #[track_caller]
    pub fn next(&self) -> Packet {
        let mut frame = [0; 4096];
        loop {
            match recvfrom::<LinkAddr>(self.socket.as_raw_fd(), &mut frame) {
                Ok((bytes, Some(at))) if at.ifindex() == self.end => {
                    if let Ok(packet) = Packet::read(&frame[..bytes]) {
                        return packet;
                    }
                }
                Ok(_) | Err(Errno::EINTR) => (),
                Err(error) => panic!("nothing was sent: {error}"),
            }
        }
    }
}
